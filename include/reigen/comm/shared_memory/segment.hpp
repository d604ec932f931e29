#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// Where another process of this machine finds a segment: an open file of its maker.
struct SegmentName {
    std::int32_t process = -1;
    std::int32_t file = -1;
};

/// Memory that processes of one machine share: a file without a name, which is gone when the last of them has let go of
/// it, however they end, and which no limit of /dev/shm holds for.
///
class Segment {
  public:
    Segment() = default;

    // All throw CommunicationError, with the system's words, where there is no such memory.

    /// Memory that is taken, near its maker's core, from the start: what is not to be had is an error here, not a signal
    /// when it is used.
    static Segment make(Index bytes) {
        Segment segment = without_memory(bytes);
        check_code(posix_fallocate(segment.file_, 0, off_t(bytes)), "posix_fallocate");
        segment.map(segment.file_, PROT_READ | PROT_WRITE);
        return segment;
    }

    /// Addresses whose memory is taken when it is first used, as that of a heap is.
    static Segment reserve(Index bytes) {
        Segment segment = without_memory(bytes);
        segment.map(segment.file_, PROT_READ | PROT_WRITE);
        return segment;
    }

    /// The segment that a process of this machine and user has made, and still holds the file of.
    static Segment attach(SegmentName name, Index bytes) { return attach(name, bytes, O_RDWR, PROT_READ | PROT_WRITE); }
    static Segment attach_to_read(SegmentName name, Index bytes) { return attach(name, bytes, O_RDONLY, PROT_READ); }

    Segment(Segment&& other) noexcept { swap(other); }
    Segment& operator=(Segment&& other) noexcept {
        Segment(std::move(other)).swap(*this);
        return *this;
    }
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    ~Segment() {
        if (data_ != nullptr)
            munmap(data_, std::size_t(bytes_));
        close_file();
    }

    std::byte* data() const { return static_cast<std::byte*>(data_); }
    Index size() const { return bytes_; }
    SegmentName name() const { return {std::int32_t(getpid()), file_}; }

    /// Nobody can attach to it any more; those who have keep it.
    void close_file() noexcept {
        if (file_ >= 0)
            close(std::exchange(file_, -1));
    }

  private:
    static Segment without_memory(Index bytes) {
        Segment segment;
        segment.bytes_ = bytes;
        segment.file_ = memfd_create("reigen", MFD_CLOEXEC);
        check(segment.file_ >= 0, "memfd_create");
        check(ftruncate(segment.file_, off_t(bytes)) == 0, "ftruncate");
        return segment;
    }

    static Segment attach(SegmentName name, Index bytes, int access, int protection) {
        const std::string path = concat("/proc/", name.process, "/fd/", name.file);
        Segment segment;
        segment.bytes_ = bytes;
        segment.file_ = open(path.c_str(), access | O_CLOEXEC); // NOLINT(cppcoreguidelines-pro-type-vararg)
        check(segment.file_ >= 0, path.c_str());
        segment.map(segment.file_, protection);
        segment.close_file();
        return segment;
    }

    void map(int file, int protection) {
        void* const memory = mmap(nullptr, std::size_t(bytes_), protection, MAP_SHARED | MAP_NORESERVE, file, 0);
        check(memory != MAP_FAILED, "mmap"); // NOLINT(performance-no-int-to-ptr)
        data_ = memory;
    }

    static void check(bool well, const char* what) { check_code(well ? 0 : errno, what); }

    static void check_code(int error, const char* what) {
        require<CommunicationError>(error == 0, "shared memory: ", what, ": ", std::strerror(error));
    }

    void swap(Segment& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(file_, other.file_);
    }

    void* data_ = nullptr;
    Index bytes_ = 0;
    int file_ = -1;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
