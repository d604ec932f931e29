#pragma once

// Everything for files that compute. The one that makes the ranks includes what makes them as well, <reigen/mpi.hpp> or
// <reigen/comm/threads.hpp>, and what is to watch them: comm/checked.hpp, comm/trace.hpp, comm/faulty.hpp. Their virtual
// functions would cost every other file a seventh of its compile time: compilers look at all that a call might reach.

#include <reigen/core/buffer.hpp>
#include <reigen/core/error.hpp>
#include <reigen/core/memory.hpp>
#include <reigen/core/poll.hpp>
#include <reigen/core/random.hpp>
#include <reigen/core/runs.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/core/types.hpp>
#include <reigen/core/version.hpp>

#include <reigen/kernel/attention_backward.hpp>
#include <reigen/kernel/attention_forward.hpp>
#include <reigen/kernel/gemm.hpp>
#include <reigen/kernel/packed_weight.hpp>

#include <reigen/comm/by_node.hpp>
#include <reigen/comm/communicator.hpp>
#include <reigen/comm/deadline.hpp>
#include <reigen/comm/launcher.hpp>
#include <reigen/comm/matrix.hpp>
#include <reigen/comm/mesh.hpp>
#include <reigen/comm/texts.hpp>

#include <reigen/layout/audit.hpp>
#include <reigen/layout/blocks.hpp>
#include <reigen/layout/ledger.hpp>
#include <reigen/layout/nonfinite.hpp>
#include <reigen/layout/parameter.hpp>
#include <reigen/layout/partition.hpp>
#include <reigen/layout/placement.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/layout/sequences.hpp>
#include <reigen/layout/sharded.hpp>

#include <reigen/matmul/all_gather_matmul.hpp>
#include <reigen/matmul/audit.hpp>
#include <reigen/matmul/elementwise.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/matmul_reduce_scatter.hpp>
#include <reigen/matmul/packed_shard.hpp>
#include <reigen/matmul/same_bits.hpp>
#include <reigen/matmul/sums.hpp>

#include <reigen/attention/audit.hpp>
#include <reigen/attention/heads.hpp>
#include <reigen/attention/options.hpp>
#include <reigen/attention/reference.hpp>
#include <reigen/attention/ring.hpp>

#include <reigen/nn/adamw.hpp>
#include <reigen/nn/attention.hpp>
#include <reigen/nn/block.hpp>
#include <reigen/nn/cross_entropy.hpp>
#include <reigen/nn/dropout.hpp>
#include <reigen/nn/embedding.hpp>
#include <reigen/nn/gradients.hpp>
#include <reigen/nn/linear.hpp>
#include <reigen/nn/mlp.hpp>
#include <reigen/nn/norm.hpp>
#include <reigen/nn/rotary.hpp>
