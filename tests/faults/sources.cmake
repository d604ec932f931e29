# cmake -DTESTS=tests -P sources.cmake: every report below is named in the source of some test.

set(reports
  # products and placements
  "text-generation-inference#1036" "tokenspeed#80" "AiDotNet.Tensors#266" "pytorch#153595" "pytorch#103306"
  "hypre#1599" "pytorch PR#194457" "DeepSpeed#8316" "pytorch#163193" "pytorch#159856" "Megatron#5337" "pytorch#130251"
  "COSMA#20" "DLA-Future#1022"
  # backward
  "Megatron#1446" "gpt-neox#1257" "Megatron#7452" "Automodel#3822" "torchtitan#4332" "mindone PR#1438"
  "diffusers#14265" "Megatron#6656"
  # vocabulary and loss
  "torchtitan#4297" "openxla#42481" "torchtitan#2252"
  # fused weights
  "xllm#1616" "ColossalAI#817"
  # attention
  "ring-flash-attention PR#30" "flashinfer#4051" "flash-attention PR#978" "flashinfer#4267" "flash-attention#1778"
  "cutlass#2336" "pytorch#141429" "pytorch#159706" "TransformerEngine#3331" "Megatron#560" "DeepSpeed#5808"
  "sglang PR#35045" "TransformerEngine#3528" "transformers#39408" "prime-rl PR#2828" "ring-flash-attention#35"
  "flash-attention#2611" "TransformerEngine#1761"
  # plumbing
  "nccl#479" "mpich#418" "TransformerEngine PR#951" "EasyContext#10" "pytorch#113376" "mlx#4236" "mlx#4475"
  "TransformerEngine PR#1208" "torchtitan#1283" "pytorch#170073" "vllm#2528")

file(GLOB_RECURSE sources ${TESTS}/*.cpp)
set(all "")
foreach(source IN LISTS sources)
  file(READ ${source} text)
  string(APPEND all "${text}\n")
endforeach()

foreach(report IN LISTS reports)
  string(REPLACE "." "\\." pattern "${report}")
  if(NOT all MATCHES "[^-A-Za-z0-9]${pattern}[^0-9]")
    list(APPEND missing "${report}")
  endif()
endforeach()

if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "no test names ${missing}: a test was lost, or its comment")
endif()
