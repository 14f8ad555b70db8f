"""What each instruction does, in one paragraph: the answer of `trena explain nki.isa.<name>`.

dst comes first in every instruction and its dtype decides the cast. P is the partition axis (at most 128),
F the free axis. Arithmetic is float32 inside unless said (nki.md §5.2).
"""

INSTRUCTIONS = {
    "activate2": "ScalarE, gen4. dst = op((data op0 imm0) op1 imm1) in six forms, optionally reduced along F by add, "
                 "maximum, minimum, abs_max or abs_min; relu_param is the slope of nl.prelu.",
    "activation": "ScalarE. dst[P,F] = op(scale * data + bias). scale: number or float32 [P,1]; bias: [P,1] or number. "
                  "reduce_op=nl.add with reduce_cmd sums along F in a register per partition; reduce_res is [P,1]. "
                  "nl.prelu has slope 0 here, the default of activate2.",
    "activation_reduce": "ScalarE. activation plus its sum along F into reduce_res [P,1]; the register is reset first.",
    "affine_select": "GpSimd. dst[p,i] = on_true_tile[p,i] where offset + channel_multiplier*p + pattern(i) cmp_op 0, "
                     "else on_false_value.",
    "bn_aggr": "VectorE. Combines bn_stats results into mean and variance: dst[P,2].",
    "bn_stats": "VectorE. Count, mean and variance of even and odd elements along F (at most 512): dst[P,6].",
    "core_barrier": "The cores of an LNC pair wait for each other; data is the shared HBM tensor they agree on.",
    "dma_compute": "DMA. dst = sum of scaled sources, or read-modify-write by index vector with two sources.",
    "dma_copy": "DMA. dst = src between HBM and SBUF in any combination; counts of elements must match, dtypes may "
                "differ (through float32) unless dge_mode is hwdge.",
    "dma_transpose": "DMA. dst = src with axes reversed as [1,0], [2,1,0] or [3,1,2,0]; dst in SBUF.",
    "dropout": "VectorE. dst = data with elements zeroed with probability prob (number or [P,1]). The random bits are "
               "Trena's own XORWOW (evidence: estimate): the device's are not published.",
    "exponential": "VectorE, gen4. dst = exp(src - max_value), optionally summed along F.",
    "iota": "GpSimd. dst[p,i] = offset + channel_multiplier*p + pattern(i), int32 or uint32.",
    "local_gather": "GpSimd. The indices of 16 partitions, column by column, are free offsets: each of these rows of "
                    "src_buffer gives num_elem_per_idx elements at each.",
    "max8": "VectorE. The eight largest values per partition, in descending order: dst[P,8].",
    "memset": "VectorE or GpSimd. Every element of dst = value, in dst's own dtype.",
    "nc_find_index8": "VectorE. For each of eight vals per partition the index where data first has it: uint32.",
    "nc_match_replace8": "VectorE. dst = data with the first occurrence of each of eight vals replaced by imm.",
    "nc_matmul": "TensorE. dst[M,N] (PSUM) = stationary[K,M].T @ moving[K,N]; K, M at most 128, N at most 512 float32. "
                 "accumulate=None adds where a matmul wrote before and overwrites elsewhere.",
    "nc_matmul_mx": "TensorE, gen4. As nc_matmul with MX-quantised operands (x4 dtypes) and their e8m0 scales.",
    "nc_n_gather": "GpSimd. dst[p,i] = data[p, indices[p,i]], data flattened along F.",
    "nc_stream_shuffle": "VectorE. Moves partitions within quadrants of 32 by shuffle_mask; 255 leaves one alone.",
    "nc_transpose": "TensorE ([128,128] into PSUM, dtype kept) or VectorE ([32,32]). dst = data.T.",
    "nonzero_with_count": "GpSimd. In every 16th partition: indices of the non-zero elements, then padding, then their "
                          "count.",
    "quantize_mx": "VectorE, gen4. float16 or bfloat16 to MXFP8 data (x4) and scales, by groups of 32.",
    "rand2": "VectorE, gen4. Uniform random numbers from min up to max (numbers or [P,1]). The bits are Trena's own "
             "(evidence: estimate).",
    "rand_get_state": "GpSimd or VectorE (gen4). Stores its random number generators, 6 or 24 words a lane.",
    "rand_set_state": "GpSimd or VectorE (gen4). Loads its random number generators, 6 or 24 words a lane.",
    "range_select": "VectorE. dst = on_true_tile where the element's index compares with both bound0 and bound1, "
                    "else -FLT_MAX; optionally the maximum along F.",
    "reciprocal": "VectorE. dst = 1 / data.",
    "register_alloc": "A register of the sequencers, optionally set.",
    "register_load": "Register = the one element of a tensor.",
    "register_move": "Register = a number or another register.",
    "register_store": "The one element of a tensor = a register.",
    "rng": "VectorE or GpSimd. 32 random bits per element, the low ones kept. The bits are Trena's own XORWOW "
           "(evidence: estimate): the device's constants are not published.",
    "scalar_tensor_tensor": "VectorE. dst = (data op0 operand0) op1 operand1; operand0 number or [P,1].",
    "select_reduce": "VectorE. dst = on_true where predicate is set, else on_false; optionally the maximum along F.",
    "sendrecv": "The cores of an LNC pair exchange SBUF tiles; both make the call with the same pipe_id.",
    "sequence_bounds": "GpSimd. dst[1,2,n]: for each segment id the first index of its run and one past the last; "
                       "n and -1 where the id is 0.",
    "set_rng_seed": "VectorE. One 32-bit seed for the random number generators of all lanes.",
    "tensor_copy": "VectorE, ScalarE or GpSimd. dst = src within SBUF and PSUM; bit-exact on VectorE for equal dtypes.",
    "tensor_copy_predicated": "VectorE. dst = src where predicate is non-zero, dst keeps its value elsewhere.",
    "tensor_partition_reduce": "GpSimd. Reduces over partitions: dst[1,F].",
    "tensor_reduce": "VectorE. dst = data reduced by op over its last free axes; negate flips the sign of the result.",
    "tensor_scalar": "VectorE (ScalarE, GpSimd for some). dst = (data op0 operand0) op1 operand1; operands numbers or "
                     "float32 [P,1]; reverse0/1 swap the sides.",
    "tensor_scalar_cumulative": "VectorE. tensor_scalar followed by a running reduction along F.",
    "tensor_scalar_reduce": "VectorE. tensor_scalar with one operator, and a reduction along F into reduce_res [P,1].",
    "tensor_tensor": "VectorE or GpSimd. dst = data1 op data2; not both inputs in PSUM.",
    "tensor_tensor_scan": "VectorE. Running state along F: s = (data0[i] op0 s) op1 data1[i]; dst[i] = s.",
    "topk": "GpSimd. 16 partitions hold a list of n bfloat16, column by column; each of them gets its K largest "
            "values, ascending, and their indices.",
}
