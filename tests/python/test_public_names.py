"""Every public name of the current API (stubs of NKI 0.6) is here, or says by name that it is not modelled."""

import importlib

import pytest

import trena
from trena import errors
from trena.nki.isa.documentation import INSTRUCTIONS

ISA = """tensor_engine vector_engine scalar_engine gpsimd_engine unknown_engine engine reduce_cmd dge_mode oob_mode
matmul_perf_mode nc_version dma_engine NkiInstruction NkiValidationError VirtualRegister get_nc_sub_version
get_nc_version dma_copy tensor_copy memset tensor_copy_predicated nc_matmul nc_matmul_mx nc_transpose dma_transpose
tensor_tensor tensor_scalar tensor_reduce tensor_partition_reduce tensor_scalar_cumulative activation
activation_reduce activate2 iota affine_select local_gather nc_n_gather bn_stats bn_aggr tensor_tensor_scan
nc_stream_shuffle rng dropout set_rng_seed rand_set_state rand_get_state rand2 exponential reciprocal max8
sequence_bounds scalar_tensor_tensor tensor_scalar_reduce core_barrier dma_compute quantize_mx range_select
select_reduce sendrecv register_alloc register_move register_load register_store nc_find_index8 nc_match_replace8
nonzero_with_count topk"""
LANGUAGE = """DType bool_ int8 int16 int32 uint8 uint16 uint32 float16 float32 bfloat16 tfloat32 float8_e4m3
float8_e4m3fn float8_e5m2 float8_e5m2_x4 float8_e4m3fn_x4 float8_e8m0fnu float4_e2m1fn_x4 sbuf psum hbm private_hbm
shared_hbm tile_size average prelu bypass MemoryRegion NKIObject NkiTensor is_hbm is_on_chip is_psum is_sbuf add
subtract multiply divide maximum minimum abs_max abs_min abs square power equal not_equal less less_equal greater
greater_equal bitwise_and bitwise_or bitwise_xor invert left_shift right_shift logical_and logical_or logical_xor
logical_not exp log sqrt rsqrt tanh sigmoid relu gelu gelu_apprx_sigmoid gelu_apprx_tanh gelu_dx
gelu_apprx_sigmoid_dx silu silu_dx softplus mish erf erf_dx reciprocal copy sin cos tan arctan ceil floor trunc
negative sign fmod mod sum max min mean prod var all softmax rms_norm where dropout ones full zeros_like empty_like
random_seed expand_dims broadcast_to transpose matmul no_reorder load_transpose2d gather_flattened ds affine_range
sequential_range static_range dynamic_range fori_loop while_loop ndarray zeros load store program_id num_programs
program_ndim shared_constant shared_identity_matrix device_print rand"""
COLLECTIVES = """ReplicaGroup all_reduce all_gather all_gather_v reduce_scatter all_to_all all_to_all_v
collective_permute collective_permute_implicit collective_permute_implicit_reduce
collective_permute_implicit_current_processing_rank_id rank_id"""
NAMES = {"isa": ISA, "language": LANGUAGE, "collectives": COLLECTIVES, "": "jit simulate"}

# Present, but each call says that it is not modelled.
NOT_MODELLED = """all_gather all_gather_v all_to_all all_to_all_v reduce_scatter collective_permute
collective_permute_implicit collective_permute_implicit_current_processing_rank_id
collective_permute_implicit_reduce"""


@pytest.mark.parametrize("module, names", list(NAMES.items()))
def test_every_public_name_is_here(module, names):
    namespace = importlib.import_module("trena.nki" + (f".{module}" if module else ""))
    assert [name for name in names.split() if not hasattr(namespace, name)] == []


def test_what_is_not_modelled_is_known():
    """No more and no less than the table above."""
    found = []
    for module, names in NAMES.items():
        namespace = importlib.import_module("trena.nki" + (f".{module}" if module else ""))
        for name in names.split():
            if module == "collectives" and getattr(getattr(namespace, name), "__module__", "") == namespace.__name__:
                if name != "ReplicaGroup":
                    with pytest.raises(errors.NotModelled) as caught:
                        getattr(namespace, name)()
                    assert name in str(caught.value)
                    found.append(name)
    assert sorted(found) == sorted(NOT_MODELLED.split())
    compiled = [name for name in dir(trena._core.isa) if not name.startswith("_")]
    assert set(INSTRUCTIONS) - set(compiled) - {"register_alloc"} == set()
