#pragma once

#include <reigen/core/error.hpp>
#include <reigen/core/types.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// A number that nobody else has drawn.
inline std::uint64_t drawn_number() {
    std::uint64_t number = 0;
    require<CommunicationError>(getentropy(&number, sizeof number) == 0,
                                "shared memory: getentropy: ", std::strerror(errno));
    return number;
}

/// Where another process of this machine finds a segment: an open file of its maker, which begins with this number.
/// Processes that number each other differently, as in containers of their own, would find another file, or none.
struct SegmentName {
    std::int32_t process = -1;
    std::int32_t file = -1;
    std::uint64_t number = 0;
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
        check_code(posix_fallocate(segment.file_, 0, off_t(segment.length())), "posix_fallocate");
        segment.map_own();
        return segment;
    }

    /// Addresses whose memory is taken when it is first used, as that of a heap is.
    static Segment reserve(Index bytes) {
        Segment segment = without_memory(bytes);
        segment.map_own();
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
        if (memory_ != nullptr)
            munmap(memory_, std::size_t(length()));
        close_file();
    }

    /// Aligned to 64 bytes.
    std::byte* data() const { return static_cast<std::byte*>(memory_) + head_bytes; }
    Index size() const { return bytes_; }
    SegmentName name() const { return {std::int32_t(getpid()), file_, number_}; }

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
        check(ftruncate(segment.file_, off_t(segment.length())) == 0, "ftruncate");
        return segment;
    }

    static Segment attach(SegmentName name, Index bytes, int access, int protection) {
        const std::string path = concat("/proc/", name.process, "/fd/", name.file);
        Segment segment;
        segment.bytes_ = bytes;
        segment.file_ = open(path.c_str(), access | O_CLOEXEC); // NOLINT(cppcoreguidelines-pro-type-vararg)
        check(segment.file_ >= 0, path.c_str());
        struct stat found{};
        check(fstat(segment.file_, &found) == 0, "fstat");
        require<CommunicationError>(found.st_size == segment.length(), "shared memory: ", path, " is another file");
        segment.map(protection);
        segment.close_file();
        std::memcpy(&segment.number_, segment.memory_, sizeof segment.number_);
        require<CommunicationError>(segment.number_ == name.number, "shared memory: ", path, " is another's");
        return segment;
    }

    void map_own() {
        map(PROT_READ | PROT_WRITE);
        number_ = drawn_number();
        std::memcpy(memory_, &number_, sizeof number_);
    }

    void map(int protection) {
        void* const memory = mmap(nullptr, std::size_t(length()), protection, MAP_SHARED | MAP_NORESERVE, file_, 0);
        check(memory != MAP_FAILED, "mmap"); // NOLINT(performance-no-int-to-ptr)
        memory_ = memory;
    }

    /// Of the file: the number, and the bytes asked for.
    Index length() const { return head_bytes + bytes_; }

    static void check(bool well, const char* what) { check_code(well ? 0 : errno, what); }

    static void check_code(int error, const char* what) {
        require<CommunicationError>(error == 0, "shared memory: ", what, ": ", std::strerror(error));
    }

    void swap(Segment& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
        std::swap(file_, other.file_);
        std::swap(number_, other.number_);
    }

    static constexpr Index head_bytes = 64;

    void* memory_ = nullptr;
    Index bytes_ = 0;
    int file_ = -1;
    std::uint64_t number_ = 0;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
