"""What the versions of NKI do differently: one table, and the means to put one version in force.

Without a version the current API answers, and lenience of older ones that does no harm (strings as buffers, outputs in
nl.hbm with a warning, neuronxcc.nki beside nki) is kept. `use("0.3")` makes `nki` what NKI 0.3 was: names that came
later are gone, signatures and defaults are those of then, and what that version refused is refused.

Sources: the release notes and the migration guide of the AWS Neuron SDK, and the API stubs of its releases 2.27 to
2.32, compared name by name and parameter by parameter.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import warnings

from trena import _core, errors

CURRENT = "0.6"
# Version of NKI -> releases of the Neuron SDK that brought it. 0.1 is the legacy API, neuronxcc.nki.
VERSIONS = {
    "0.1": ("2.20", "2.21", "2.22", "2.23", "2.24", "2.25", "2.26"),
    "0.2": ("2.27", "2.28"),
    "0.3": ("2.29",),
    "0.4": ("2.30",),
    "0.5": ("2.31",),
    "0.6": ("2.32",),
}

# ---- What a row can say ------------------------------------------------------------------------------

ABSENT = "absent"  # earlier versions lack the name
NOT_MODELLED = "not modelled"  # earlier versions differ, and a call of it in one of them says so
SAME = "same"  # Trena makes no difference between the two, for the reason in `what`


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference between a version and those before it.

    since   the first version that is as today
    name    path below nki: isa.dma_copy, language.tile_size.sbuf_fmax, language.NkiTensor.ap; or rule:… (see holds)
    what    in a few words
    was     for versions before `since`: ABSENT, NOT_MODELLED, SAME, the parameters as they were ("dst, imm"), or a
            function that makes the old function of the new one
    then    with parameters: makes today's keywords of the old ones (a dict, changed in place), or does the call
            itself and returns what is not None
    now     for `since` and later, once a version is named: makes the stricter function of the lenient one
    """

    since: str
    name: str
    what: str
    was: object = SAME
    then: object = None
    now: object = None


def _fix(**values):
    """Today's parameters that an older version fixed, whatever was passed."""
    return lambda function, given: given.update(values)


def _rename(old, new):
    def then(function, given):
        given[new] = given.pop(old)
    return then


def _read_modify_write(dma_copy, given):
    """0.2's dma_copy could add onto its destination; 0.3 moved that to dma_compute."""
    from trena.nki import isa

    op, unique = given.pop("dst_rmw_op"), given.pop("unique_indices")
    for name, members in (("dge_mode", isa.dge_mode), ("oob_mode", isa.oob_mode)):
        if isinstance(given[name], int):
            given[name] = next(m for m in (getattr(members, n) for n in dir(members)) if getattr(m, "value", None)
                               == given[name])
    if str(given["src"].buffer) == "psum":
        raise errors.NotModelled("not modelled: dma_copy out of PSUM, as NKI 0.2 allowed", id="not-modelled",
                                 here="nisa.dma_copy(src=a tensor in PSUM)", fix="copy it to SBUF with tensor_copy")
    if op is not None:
        return _core.isa.dma_compute(dst=given["dst"], srcs=[given["src"], given["dst"]], reduce_op=op,
                                     unique_indices=unique, name=given["name"])
    return None


def _move_immediate(register_move, given):
    from trena.nki import registers

    given["src"] = registers.register_alloc(given.pop("imm"))


def _engine_of_send(sendrecv, given):
    from trena.nki import isa

    engines = isa.dma_engine
    given["dma_engine"] = engines.gpsimd_dma if given.pop("use_gpsimd_dma") else engines.dma


def _buffer_or_sbuf(function, given):
    from trena.nki import language

    given["buffer"] = language.sbuf if given["buffer"] is None else given["buffer"]


def _casts_its_value(memset):
    @functools.wraps(memset)
    def older(dst, value, *args, **more):
        return memset(dst, int(value) if dst.dtype.is_integer else value, *args, **more)
    return older


def _one_means_last(tensor_reduce):
    @functools.wraps(tensor_reduce)
    def older(dst, op, data, axis, *args, **more):
        return tensor_reduce(dst, op, data, data.ndim - 1 if type(axis) is int and axis == 1 else axis, *args, **more)
    return older


def _pads_its_result(dma_transpose):
    @functools.wraps(dma_transpose)
    def older(dst, src, axes=None, **more):
        order = tuple(axes) if axes is not None else tuple(range(src.ndim))[::-1]
        if dst.ndim < src.ndim and len(order) == src.ndim:
            dst = dst.reshape(tuple(src.shape[axis] for axis in order))
        return dma_transpose(dst=dst, src=src, axes=axes, **more)
    return older


def _exact_rank(dma_transpose):
    @functools.wraps(dma_transpose)
    def strict(dst, src, *args, **more):
        if dst.ndim != src.ndim:
            raise errors.IllegalInstruction("dst has the rank of src since NKI 0.4", id="nki-version",
                                            here=f"dst {list(dst.shape)}, src {list(src.shape)}")
        return dma_transpose(dst, src, *args, **more)
    return strict


def _from_storage(ap):
    """Before 0.5 the offset counted from the start of the storage, 0 unless given, whatever view it was called on."""
    def older(self, pattern, offset=0, scalar_offset=None, vector_offset=None, indirect_dim=0, dtype=None):
        from trena import dtypes

        wanted = self.dtype if dtype is None else dtypes.as_dtype(dtype)
        base = self.offset * self.dtype.itemsize // wanted.itemsize
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return ap(self, pattern, offset - base, scalar_offset, vector_offset, indirect_dim, dtype)
    return older


def _operator(call):
    """The same operator, called as a function in another way; instructions take it as before."""
    def make(operator):
        from trena.nki.language import operators

        return operators.Operator(operator.name, call, operator.__doc__)
    return make


def _by_activation(name):
    def call(x, dtype=None):
        from trena.nki.language import operators

        return operators.activate(operators.TABLE[name], x, dtype)
    return call


def _no_strings(function):
    @functools.wraps(function)
    def strict(shape, dtype, buffer="", *args, **more):
        if type(buffer) is str and buffer:
            raise errors.UsageError("buffers are objects of nki.language since NKI 0.3", id="nki-version",
                                    here=f"buffer={buffer!r}", fix=f"nl.{buffer}")
        return function(shape, dtype, *(() if buffer == "" else (buffer,)), *args, **more)
    return strict


def _refuses(keyword, why):
    def make(function):
        @functools.wraps(function)
        def strict(*args, **more):
            if more.get(keyword) is not None:
                raise errors.UsageError(why, id="nki-version", here=f"{keyword}={more[keyword]!r}",
                                        fix="leave it out: NEURON_PLATFORM_TARGET_OVERRIDE names the machine")
            return function(*args, **more)
        return strict
    return make


def _unavailable(function):
    @functools.wraps(function)
    def strict(*args, **more):
        raise errors.UsageError("nki has no launchers but jit and simulate since NKI 0.2", id="nki-version",
                                here=f"nki.{function.__name__}", fix="call the kernel, or nki.simulate(kernel)")
    return strict


def _deprecated(function):
    @functools.wraps(function)
    def warning(*args, **more):
        warnings.warn("nl.dynamic_range is deprecated since NKI 0.6: use nl.fori_loop", DeprecationWarning,
                      stacklevel=2)
        return function(*args, **more)
    return warning


# ---- The table ---------------------------------------------------------------------------------------

_COMPOSITES = """load store load_transpose2d matmul transpose softmax rms_norm mean var where dropout broadcast_to
expand_dims empty_like zeros_like full ones rand random_seed gather_flattened is_hbm is_sbuf is_psum is_on_chip"""
_BYTES = "sbuf_size_bytes sbuf_fmax sbuf_fmax_bytes psum_bank_fmax psum_bank_fmax_bytes"
_VIEWS = """permute broadcast expand_dim squeeze_dim reshape_dim flatten_dims rearrange slice select vector_select
indirect"""
_COLLECTIVES = """all_reduce all_gather reduce_scatter all_to_all collective_permute collective_permute_implicit
collective_permute_implicit_reduce"""


def _absent(since, prefix, names, what):
    return [Change(since, f"{prefix}.{name}", what, ABSENT) for name in names.split()]


CHANGES = [
    # 0.2: the API of its own name.
    Change("0.2", "rule:current-api", "kernels of `nki`; 0.1 knows neuronxcc.nki only"),
    *[Change("0.2", name, "launchers of 0.1 are gone", now=_unavailable)
      for name in ("baremetal", "benchmark", "profile")],
    # 0.3
    Change("0.3", "isa.affine_select", "offset moved behind cmp_op, 0 unless given",
           "dst, pattern, offset, channel_multiplier, on_true_tile, on_false_value, cmp_op=nl.equal, name=None"),
    Change("0.3", "isa.core_barrier", "engine is gpsimd unless given, was unknown; the vendor: no behavioural change"),
    Change("0.3", "isa.dma_compute", "scales and reduce_op change places, unique_indices comes",
           "dst, srcs, scales, reduce_op, name=None"),
    Change("0.3", "isa.dma_copy", "dst_rmw_op and unique_indices go to dma_compute, engine comes; members instead of "
           "integers; never from PSUM (not modelled for 0.2)",
           "dst, src, dst_rmw_op=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown, unique_indices=True, "
           "name=None", _read_modify_write),
    Change("0.3", "isa.iota", "offset is 0 unless given", "dst, pattern, offset, channel_multiplier=0, name=None"),
    Change("0.3", "isa.nc_matmul", "accumulate comes; without it the first product overwrites, as before",
           "dst, stationary, moving, is_stationary_onezero=False, is_moving_onezero=False, is_transpose=False, "
           "tile_position=(), tile_size=(), perf_mode=matmul_perf_mode.none, name=None"),
    Change("0.3", "isa.nc_matmul_mx", "accumulate comes", "dst, stationary, moving, stationary_scale, moving_scale, "
           "tile_position=None, tile_size=None, name=None"),
    Change("0.3", "isa.memset", "the value has the kind of the destination; a float was cast", _casts_its_value),
    Change("0.3", "isa.range_select", "reduce_cmd and on_false_value are honoured; they were ignored",
           "dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reduce_cmd.reset_reduce, "
           "reduce_res=None, reduce_op=nl.maximum, range_start=0.0, on_false_value=-3.4028235e+38, name=None",
           lambda function, given: given.update(reduce_cmd=_isa().reduce_cmd.reset_reduce,
                                                on_false_value=-3.4028234663852886e38)),
    Change("0.3", "isa.register_move", "imm=, an integer, becomes src=, a register", "dst, imm", _move_immediate),
    Change("0.3", "isa.sendrecv", "use_gpsimd_dma becomes dma_engine",
           "src, dst, send_to_rank, recv_from_rank, pipe_id, use_gpsimd_dma=False, name=None", _engine_of_send),
    Change("0.3", "isa.tensor_reduce", "axes are numbered as written; axis=1 meant the last", _one_means_last),
    *_absent("0.3", "language", _COMPOSITES, "functions on tiles come"),
    Change("0.3", "language.ndarray", "buffer is nl.sbuf unless given, was None; no strings",
           "shape, dtype, buffer=None, name='', address=None", _buffer_or_sbuf, _no_strings),
    Change("0.3", "language.zeros", "buffer is nl.sbuf unless given, was None; no strings",
           "shape, dtype, buffer=None, name=''", _buffer_or_sbuf, _no_strings),
    Change("0.3", "language.num_programs", "axes is 0 unless given, was None", "axes=None", _fix(axes=0)),
    Change("0.3", "language.program_id", "axis is 0 unless given", "axis"),
    Change("0.3", "language.sequential_range", "stop and step may be left out", "start, stop, step"),
    Change("0.3", "language.shared_identity_matrix", "dst comes", "n, dtype='uint8'"),
    Change("0.3", "simulate", "nki.simulate comes", ABSENT),
    Change("0.3", "collectives.all_to_all_v", "comes", ABSENT),
    Change("0.3", "jit", "platform_target is refused; mode is ignored, as Trena does for every version",
           now=_refuses("platform_target", "nki.jit takes no platform_target since NKI 0.3")),
    Change("0.3", "rule:shared-outputs", "outputs are in nl.shared_hbm; without a version nl.hbm draws a warning"),
    Change("0.3", "rule:parser", "the vendor's parser refuses `is`, a bare `*` and lists as arguments: not modelled, "
           "any Python runs"),
    # 0.4
    Change("0.4", "isa.activate2", "comes", ABSENT),
    *_absent("0.4", "language", "prelu bypass abs_max abs_min", "operators of trn3 come"),
    *_absent("0.4", "language.tile_size", _BYTES, "sizes in bytes and banks come"),
    *[Change("0.4", f"isa.{name}", "goes; what 0.2 and 0.3 did in it is not modelled", NOT_MODELLED)
      for name in ("tensor_copy_dynamic_src", "tensor_copy_dynamic_dst")],
    Change("0.4", "isa.dma_copy", "priority comes, third of the parameters",
           "dst, src, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown, engine=engine.unknown, name=None"),
    Change("0.4", "isa.dma_transpose", "dst has the rank of src; fewer dimensions were padded, and are "
           "without a version", _pads_its_result, now=_exact_rank),
    Change("0.4", "isa.dma_transpose", "priority comes, fourth of the parameters",
           "dst, src, axes=None, dge_mode=dge_mode.unknown, oob_mode=oob_mode.error, name=None"),
    Change("0.4", "isa.tensor_scalar_reduce", "reduce_cmd and reduce_init come",
           "dst, data, op0, operand0, reduce_op, reduce_res, reverse0=False, name=None"),
    Change("0.4", "isa.dma_compute", "oob_mode comes",
           "dst, srcs, reduce_op, scales=None, unique_indices=True, name=None"),
    Change("0.4", "isa.nc_transpose", "engine is honoured; it was ignored",
           "dst, data, engine=engine.unknown, name=None",
           lambda function, given: given.update(engine=_isa().engine.unknown)),
    *[Change("0.4", f"collectives.{name}", "priority comes, last of the parameters; refused by none") for name in
      _COLLECTIVES.split()],
    Change("0.4", "rule:no-legacy-kernels", "kernels of neuronxcc.nki are refused"),
    Change("0.4", "rule:precise-values", "the vendor's simulator keeps narrow types as they are (NKI_PRECISE_FP=1); "
           "before, as float32: not modelled, Trena's values are the device's in every version"),
    # 0.5
    *_absent("0.5", "language", "float8_e8m0fnu average", "come"),
    Change("0.5", "isa.get_nc_sub_version", "comes", ABSENT),
    Change("0.5", "language.tile_size.psum_num_banks", "comes", ABSENT),
    Change("0.5", "language.NkiTensor.ap", "offset is the view's unless given and adds to it; it was 0 and counted "
           "from the start of the storage", _from_storage),
    Change("0.5", "language.NkiTensor.reshape", "one parameter; element counts are checked, as Trena does for every "
           "version", "self, new_shape=None, shape=None",
           lambda function, given: given.update(
               shape=given.pop("new_shape") if given["new_shape"] is not None else given["shape"])
           or given.pop("new_shape", None)),
    *[Change("0.5", f"language.NkiTensor.{name}", "comes; Trena does not take methods of tensors away")
      for name in _VIEWS.split()],
    Change("0.5", "language.rsqrt", "called, it runs on GpSimd and takes no PSUM; on the scalar engine before",
           _operator(_by_activation("rsqrt"))),
    Change("0.5", "isa.quantize_mx", "scales are twice as large; those of before are not modelled", NOT_MODELLED),
    *[Change("0.5", f"isa.{name}", "the engine is named unless given, was unknown: Trena chose the same")
      for name in ("rng", "rand_set_state", "rand_get_state")],
    # 0.6
    *_absent("0.6", "isa", "topk NkiInstruction", "come"),
    *_absent("0.6", "language", "fori_loop while_loop", "loops on the device as functions come"),
    Change("0.6", "collectives.all_gather_v", "comes", ABSENT),
    Change("0.6", "isa.tensor_scalar_reduce", "reduce_res may be left out, reduce_res_negate comes",
           "dst, data, op0, operand0, reduce_op, reduce_res, reverse0=False, reduce_cmd=reduce_cmd.reset_reduce, "
           "reduce_init=None, name=None"),
    Change("0.6", "isa.dma_transpose", "hardware descriptors take more shapes: Trena takes them in every version"),
    Change("0.6", "language.copy", "called, it runs on the vector engine, bit for bit; on the scalar engine before, "
           "through float32", _operator(_by_activation("copy"))),
    Change("0.6", "language.dynamic_range", "deprecated", now=_deprecated),
]


def _isa():
    from trena.nki import isa

    return isa


# ---- Versions and their order ------------------------------------------------------------------------


def resolve(text: str | None) -> str | None:
    """The version that "0.4", "0.4.0" or "2.30" (of the SDK) names; None and "" are none in particular."""
    if not text:
        return None
    short = ".".join(str(text).split(".")[:2])
    for version, releases in VERSIONS.items():
        if short == version or short in releases:
            return version
    known = ", ".join(f"{version} (SDK {releases[0]}{'–' + releases[-1] if len(releases) > 1 else ''})"
                      for version, releases in VERSIONS.items())
    raise errors.UsageError("a version of NKI, or of the Neuron SDK that brought it, is one that Trena knows",
                            id="nki-version", here=f"--nki-version {text}", limit=known)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


# ---- Putting one in force ----------------------------------------------------------------------------

_in_force: str | None = None
_replaced: list[tuple[object, str, object]] = []  # (owner, attribute, what was there)


def in_force() -> str | None:
    """The version that was named, or None."""
    return _in_force


def holds(rule: str) -> bool:
    """Is a version named, and does the row rule:… of the table hold in it?"""
    since = next(change.since for change in CHANGES if change.name == f"rule:{rule}")
    return _in_force is not None and _number(_in_force) >= _number(since)


def use(text: str | None) -> str | None:
    """Makes nki what it was in that version, in this process, for kernels launched from now on; None undoes it.

    Names that a script imported before (`from nki.isa import …`) stay what they are: name the version first.
    """
    global _in_force
    version = resolve(text)
    while _replaced:
        owner, name, value = _replaced.pop()
        _put(owner, name, value)
    _in_force = version
    importlib.import_module("trena.nki").__version__ = f"{version or CURRENT}.0+trena"
    if version is not None:
        for change in sorted(CHANGES, key=lambda change: _number(change.since), reverse=True):
            _apply(change, version)
    return version


_NONE = object()


def _put(owner, name, value):
    if value is _NONE:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def _apply(change: Change, version: str) -> None:
    if change.name.startswith("rule:"):
        return
    make = change.now if _number(version) >= _number(change.since) else change.was
    if make is None or make is SAME:
        return
    owner, name = _owner_of(change.name)
    today = vars(owner).get(name, _NONE)
    if make is ABSENT:
        if today is _NONE:
            return
        delattr(owner, name)
    elif make is NOT_MODELLED:
        setattr(owner, name, _not_modelled(change, version))
    elif isinstance(make, str):
        setattr(owner, name, _with_parameters(change, today))
    else:
        setattr(owner, name, make(today))
    _replaced.append((owner, name, today))


def _owner_of(path: str):
    """(what holds the attribute, its name) of a path below nki."""
    *modules, name = path.split(".")
    owner = importlib.import_module(".".join(["trena.nki", *modules[:1]]))
    for step in modules[1:]:
        owner = getattr(owner, step)
    return (owner if inspect.ismodule(owner) or isinstance(owner, type) else type(owner)), name


def why_absent(module: str, name: str) -> str:
    """For the AttributeError of a module: since when there is such a name, if the version in force lacks it."""
    for change in CHANGES:
        if _in_force and change.name == f"{module}.{name}" and change.was is ABSENT:
            return f" in NKI {_in_force}: it came with {change.since}"
    return ""


def _not_modelled(change, version):
    def missing(*args, **kwargs):
        raise errors.NotModelled(f"not modelled: nki.{change.name} of NKI {version}", id="not-modelled",
                                 here=f"nki.{change.name}; {change.since}: {change.what}")
    return missing


def _with_parameters(change, today):
    """A function with the old parameters that calls today's with keywords."""
    from trena.nki import language

    names = {**vars(_isa()), "nl": language}
    signature = inspect.signature(eval(f"lambda {change.was}: None", names))  # of the table, not of users

    @functools.wraps(today)
    def older(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise errors.UsageError(f"nki.{change.name} takes ({change.was}) before NKI {change.since}",
                                    id="nki-version", here=str(error)) from None
        bound.apply_defaults()
        given = dict(bound.arguments)
        if change.then is not None:
            done = change.then(today, given)
            if done is not None and not isinstance(done, (tuple, list)):
                return done
        receiver = (given.pop("self"),) if "self" in given else ()
        return today(*receiver, **given)

    older.__signature__ = signature
    return older


# ---- For people --------------------------------------------------------------------------------------


def table() -> list[str]:
    """The rows as lines of Markdown, rows that say the same in one; docs/compatibility.md holds them."""
    lines = []
    for version in VERSIONS:
        groups: dict[tuple, list[str]] = {}
        for change in CHANGES:
            if change.since == version:
                groups.setdefault((change.what, _treatment(change)), []).append(change.name)
        for (what, treatment), names in groups.items():
            shown = ", ".join(f"`{name}`" for name in names if not name.startswith("rule:")) or "–"
            lines.append(f"| {version} | {shown} | {what} | {treatment} |")
    return lines


def _treatment(change: Change) -> str:
    if "not modelled" in change.what or change.was is NOT_MODELLED:
        return "not modelled"
    if change.was is ABSENT:
        return "absent before"
    if change.was is SAME and change.now is None and not change.name.startswith("rule:"):
        return "no difference"
    return "modelled"
