#pragma once

/// The library's version: major * 10000 + minor * 100 + patch. CMake and the package read it from here.
#define REIGEN_VERSION 100
