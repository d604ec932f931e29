# Package files for Eigen's headers alone, as Python packages carry them. For Eigen3_DIR; EIGEN_HEADERS is the folder of
# the headers.
file(STRINGS ${EIGEN_HEADERS}/Eigen/Version eigen_version REGEX "define EIGEN_VERSION_STRING ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Eigen3_VERSION "${eigen_version}")

add_library(Eigen3::Eigen INTERFACE IMPORTED)
target_include_directories(Eigen3::Eigen INTERFACE ${EIGEN_HEADERS})
