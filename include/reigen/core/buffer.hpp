#pragma once

#include <reigen/core/buffer_source.hpp>
#include <reigen/core/error.hpp>
#include <reigen/core/huge_pages.hpp>
#include <reigen/core/memory.hpp>
#include <reigen/core/types.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// A block of `size()` elements, aligned to 64 bytes, entered in the rank's `MemoryAccount`. Moves, does not copy.
///
/// Elements are uninitialised unless made by `zeros`.
template <class T>
class Buffer {
    static_assert(std::is_trivially_destructible_v<T>, "a Buffer holds plain numbers");

  public:
    static constexpr std::size_t alignment = 64;

    Buffer() = default;

    /// Room for `size` elements; `split` are the axes over which the object it belongs to is divided.
    explicit Buffer(Index size, Axes split = Axes::none, Readers readers = Readers::neighbours)
        : size_(size), entry_{current_memory_use(), split} {
        require(size >= 0, "Buffer: negative size ", size);
        require<ShapeError>(size <= std::numeric_limits<Index>::max() / Index(sizeof(T)), "Buffer: ", size,
                            " elements of ", sizeof(T), " bytes are more than any memory has");
        if (size == 0)
            return;
        account_ = memory_account();
        data_ = static_cast<T*>(take(bytes(), readers));
        account_->enter(entry_, Index(bytes()));
        if (const auto fill = account_->fill_byte())
            std::fill_n(reinterpret_cast<unsigned char*>(data_), bytes(), *fill);
    }

    static Buffer zeros(Index size, Axes split = Axes::none) {
        Buffer buffer(size, split);
        std::fill_n(buffer.data(), size, T(0));
        return buffer;
    }

    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        Buffer(std::move(other)).swap(*this);
        return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    ~Buffer() {
        if (data_ == nullptr)
            return;
        account_->leave(entry_, Index(bytes()));
        give_back(data_, bytes());
    }

    Buffer clone() const {
        Buffer copy(size_, entry_.split);
        std::copy_n(data_, size_, copy.data_);
        return copy;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    Index size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    T& operator[](Index i) { return data_[i]; }
    const T& operator[](Index i) const { return data_[i]; }

    std::span<T> span() { return {data_, std::size_t(size_)}; }
    std::span<const T> span() const { return {data_, std::size_t(size_)}; }

    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(entry_, other.entry_);
        std::swap(account_, other.account_);
    }

  private:
    static BufferSource* source_for(std::size_t bytes) {
        return bytes < BufferSource::least_bytes ? nullptr : detail::buffer_source.load(std::memory_order_acquire);
    }

    static void* take(std::size_t bytes, Readers readers) {
        if (BufferSource* const source = source_for(bytes); source != nullptr && readers != Readers::none)
            if (void* const memory = source->take(bytes))
                return memory;
        void* const memory = ::operator new(bytes, std::align_val_t(alignment));
        if (bytes >= 2 * detail::huge_page)
            detail::ask_for_huge_pages(memory, bytes);
        return memory;
    }

    static void give_back(void* memory, std::size_t bytes) {
        BufferSource* const source = source_for(bytes);
        if (source == nullptr || !source->give_back(memory, bytes))
            ::operator delete(memory, std::align_val_t(alignment));
    }

    std::size_t bytes() const { return std::size_t(size_) * sizeof(T); }

    T* data_ = nullptr;
    Index size_ = 0;
    MemoryEntry entry_;
    std::shared_ptr<MemoryAccount> account_;
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
