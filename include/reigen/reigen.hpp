#pragma once

// Everything but MPI; for ranks under mpirun include <reigen/mpi.hpp> as well.

#include <reigen/core/buffer.hpp>
#include <reigen/core/error.hpp>
#include <reigen/core/instruction_set.hpp>
#include <reigen/core/memory.hpp>
#include <reigen/core/poll.hpp>
#include <reigen/core/random.hpp>
#include <reigen/core/runs.hpp>
#include <reigen/core/strided.hpp>
#include <reigen/core/types.hpp>
#include <reigen/core/version.hpp>

#include <reigen/kernel/activation.hpp>
#include <reigen/kernel/adamw.hpp>
#include <reigen/kernel/cross_entropy.hpp>
#include <reigen/kernel/dropout.hpp>
#include <reigen/kernel/gemm.hpp>
#include <reigen/kernel/gemm_blocks.hpp>
#include <reigen/kernel/lanes.hpp>
#include <reigen/kernel/microkernel.hpp>
#include <reigen/kernel/norm.hpp>
#include <reigen/kernel/pack.hpp>
#include <reigen/kernel/packet.hpp>
#include <reigen/kernel/rotary.hpp>
#include <reigen/kernel/tile_update.hpp>
#include <reigen/kernel/transpose_packets.hpp>
#include <reigen/kernel/workspace.hpp>

#include <reigen/comm/backend.hpp>
#include <reigen/comm/communicator.hpp>
#include <reigen/comm/execution.hpp>
#include <reigen/comm/launcher.hpp>
#include <reigen/comm/mesh.hpp>
#include <reigen/comm/operation.hpp>
#include <reigen/comm/pending.hpp>
#include <reigen/comm/reduce.hpp>
#include <reigen/comm/registry.hpp>
#include <reigen/comm/schedule.hpp>
#include <reigen/comm/self.hpp>
#include <reigen/comm/thread_backend.hpp>
#include <reigen/comm/thread_mailbox.hpp>
#include <reigen/comm/threads.hpp>

#include <reigen/layout/block_copy.hpp>
#include <reigen/layout/block_view.hpp>
#include <reigen/layout/blocks.hpp>
#include <reigen/layout/head_groups.hpp>
#include <reigen/layout/ledger.hpp>
#include <reigen/layout/nested.hpp>
#include <reigen/layout/overlap.hpp>
#include <reigen/layout/parameter.hpp>
#include <reigen/layout/partition.hpp>
#include <reigen/layout/placement.hpp>
#include <reigen/layout/redistribute.hpp>
#include <reigen/layout/redistribution_plan.hpp>
#include <reigen/layout/redistribution_steps.hpp>
#include <reigen/layout/rules.hpp>
#include <reigen/layout/sequence.hpp>
#include <reigen/layout/sequences.hpp>
#include <reigen/layout/shard_spec.hpp>
#include <reigen/layout/sharded.hpp>
#include <reigen/layout/sum_overlaps.hpp>

#include <reigen/matmul/checks.hpp>
#include <reigen/matmul/elementwise.hpp>
#include <reigen/matmul/matmul.hpp>
#include <reigen/matmul/same_bits.hpp>
#include <reigen/matmul/sums.hpp>

#include <reigen/nn/adamw.hpp>
#include <reigen/nn/cross_entropy.hpp>
#include <reigen/nn/dropout.hpp>
#include <reigen/nn/gradients.hpp>
#include <reigen/nn/norm.hpp>
#include <reigen/nn/overlapping_columns.hpp>
#include <reigen/nn/parameter.hpp>
#include <reigen/nn/pass.hpp>
#include <reigen/nn/residual.hpp>
