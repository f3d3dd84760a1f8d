"""What Python's modules that answers with rules may use do by a text: each place was read."""

import ast
import sysconfig
from collections.abc import Collection, Iterator
from pathlib import Path

from autograder.judge.forbidden import BY_TEXT_ATTRIBUTES, covers, is_vetted, is_way_round
from autograder.judge.rules import QuestionRules
from autograder.judge.vetted import OTHERS, PYTHONS

BY_A_TEXT = {"exec", "eval", "compile", "__import__", "import_module", "getattr", "setattr"}
READ = {  # what asks nothing but its own objects, or by names that are written out in it
    "abc.update_abstractmethods", "ast.parse", "ast.copy_location", "ast.NodeVisitor.visit",
    "ast.NodeVisitor.visit_Constant", "ast.NodeTransformer.generic_visit",
    "collections.namedtuple", "enum.EnumType.__new__",
    "functools.total_ordering", "logging.LogRecord.__init__", "os", "reprlib.Repr.repr1",
    "shutil.copystat", "shutil.copystat.lookup", "typing", "typing.no_type_check",
    "typing.NamedTupleMeta.__new__", "warnings.catch_warnings.__init__",
    "warnings.catch_warnings.__repr__",
    # no class of a student's is made of these (`forbidden.NO_BASES`)
    "contextlib.redirect_stderr.__enter__", "contextlib.redirect_stdout.__enter__",
    # of classes of classes alone, which are held apart (`Own.makes_types`)
    "dataclasses.fields", "dataclasses.replace",
    # of Python 3.13: itself under its own name; whether what a class lists can be called, no more
    "collections", "collections.abc", "decimal", "typing.runtime_checkable",
}  # fmt: skip
READ_THERE = {
    # asks its own objects, or by a name that begins as none does, or is written out in it
    "PIL.DdsImagePlugin", "PIL.Image", "PIL.Image.init", "PIL.ImageQt",
    "PIL.PngImagePlugin.ChunkStream.call", "matplotlib.artist.ArtistInspector.get_aliases",
    "matplotlib.artist.ArtistInspector.get_setters", "matplotlib.artist.getp",
    "matplotlib.artist.ArtistInspector.get_valid_values",
    "matplotlib.artist.ArtistInspector.pprint_setters_rest",
    "matplotlib.artist.ArtistInspector.properties",
    "matplotlib.backend_bases.FigureManagerBase.pyplot_show",
    "matplotlib.backend_tools.ViewsPositionsBase.trigger", "matplotlib.colorbar.Colorbar.__init__",
    "matplotlib.font_manager.FontProperties.set_fontconfig_pattern",
    "matplotlib.gridspec.GridSpec.get_subplot_params",
    "matplotlib.gridspec.GridSpec.locally_modified_subplot_params",
    "matplotlib.legend.Legend.__init__", "matplotlib.pylab",
    "matplotlib.pyplot.install_repl_displayhook", "matplotlib.pyplot.switch_backend",
    "matplotlib.spines.SpinesProxy.__getattr__.x", "matplotlib.use",
    "matplotlib.widgets.SubplotTool.__init__", "matplotlib.widgets.ToolLineHandles.positions",
    "matplotlib.widgets.ToolLineHandles.set_data", "numpy", "numpy.core.multiarray",
    "numpy.ma.mrecords.MaskedRecords.__repr__", "numpy.ma.mrecords.MaskedRecords.__str__",
    "numpy.testing.print_coercion_tables.print_new_cast_table.print_table", "torch",
    "torch.amp.autocast_mode.autocast.__init__", "torch.autograd.graph.Node.__subclasshook__",
    "torch.autograd.graph.save_on_cpu.__init__", "torch.autograd.profiler.profile.__exit__",
    "torch.autograd.profiler_util.EventList.export_stacks", "torch.backends",
    "torch.backends.cudnn", "torch.backends.cudnn.rnn", "torch.backends.miopen",
    "torch.backends.mkldnn", "torch.backends.opt_einsum", "torch.backends.python_native",
    "torch.backends.quantized", "torch.backends.xnnpack", "torch.get_device_module",
    "torch.masked.maskedtensor.binary", "torch.masked.maskedtensor.reductions",
    "torch.masked.maskedtensor.unary", "torch.nn.attention.flex_attention.BlockMask.to",
    "torch.nn.functional.interpolate", "torch.nn.functional.max_pool3d_with_indices",
    "torch.nn.functional.pad", "torch.nn.modules.batchnorm.SyncBatchNorm.convert_sync_batchnorm",
    "torch.nn.modules.container.ParameterList.__getitem__",
    "torch.nn.modules.module.Module.get_buffer", "torch.nn.modules.module.Module.get_parameter",
    "torch.nn.modules.module.Module.get_submodule", "torch.nn.modules.module.Module.set_submodule",
    "torch.nn.modules.rnn.RNNBase.__setstate__",
    "torch.nn.modules.transformer.TransformerEncoderLayer.forward",
    "torch.nn.parallel.distributed.DistributedDataParallel.__init__",
    "torch.nn.parallel.replicate.replicate", "torch.nn.utils.fusion.fuse_conv_bn_eval",
    "torch.nn.utils.fusion.fuse_linear_bn_eval", "torch.nn.utils.parametrizations.orthogonal",
    "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.utils.parametrize.ParametrizationList.forward",
    "torch.nn.utils.parametrize.ParametrizationList.right_inverse",
    "torch.nn.utils.parametrize.register_parametrization",
    "torch.nn.utils.parametrize.remove_parametrizations",
    "torch.nn.utils.parametrize.transfer_parametrizations_and_params",
    "torch.nn.utils.spectral_norm.SpectralNorm.compute_weight",
    "torch.nn.utils.weight_norm.WeightNorm.apply", "torch.optim.swa_utils.update_bn",
    "torch.nn.utils.weight_norm.WeightNorm.compute_weight",
    "torch.return_types", "torch.utils.deterministic", "torch.utils.swap_tensors",
    "torch.sparse.semi_structured.SparseSemiStructuredTensor.__tensor_flatten__",
    "torch.utils.swap_tensors.swap_attr", "torch.xpu.get_device_capability", "tqdm.autonotebook",
    "tqdm.std.tqdm.pandas.inner_generator.inner",
    # by what may not be set, or of classes that are no bases (`forbidden.TOLD`, `NO_BASES`)
    "matplotlib.pyplot.figure", "torch.distributions.distribution.Distribution.__init__",
    "torch.nn.modules.container.ParameterDict.__getitem__",
    "torch.nn.modules.rnn.RNNBase.all_weights",
}  # fmt: skip


def files(module: str) -> list[Path]:
    home = Path(sysconfig.get_path("stdlib"))
    alone = home / f"{module}.py"
    return [alone] if alone.exists() else sorted((home / module).glob("*.py"))


def places(node: ast.AST, name: str, by: Collection[str] = BY_A_TEXT) -> Iterator[str]:
    """The functions in which something is imported, evaluated, got or set by a text."""
    for part in ast.iter_child_nodes(node):
        inner = name
        if isinstance(part, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            inner = f"{name}.{part.name}"
        if isinstance(part, ast.Attribute) and (
            part.attr == "modules"
            or (part.attr in ("load", "loads") and getattr(part.value, "id", "") == "pickle")
        ):
            yield inner
        elif isinstance(part, ast.Call):
            called = getattr(part.func, "id", getattr(part.func, "attr", ""))
            own = called == "compile" and isinstance(part.func, ast.Attribute)
            shown = called.endswith("attr") and isinstance([*part.args, None][1], ast.Constant)
            if called in by and not (own or shown):
                yield inner
        yield from places(part, inner, by)


def with_heirs(tree: ast.Module, name: str) -> Iterator[str]:
    """The same in a module, and for a class of its own those that are made of it and offered."""
    heirs: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for base in node.bases:
                heirs.setdefault(getattr(base, "id", ""), []).append(node.name)
    for place in places(tree, name):
        yield place
        kind, _, function = place.removeprefix(f"{name}.").partition(".")
        if kind.startswith("_"):
            yield from (f"{name}.{heir}.{function}" for heir in heirs.get(kind, ()))


def of_python() -> Iterator[tuple[ast.Module, str]]:
    """The vetted modules of Python's own, and the names that they have."""
    for module in PYTHONS:
        for file in files(module):
            below = f"{module}.{file.stem}" if file.parent.name == module else module
            name = module if file.stem in ("__init__", module) else below
            if not is_way_round(name):
                yield ast.parse(file.read_text("utf-8")), name


def test_what_vetted_modules_do_by_a_text_is_a_way_round_or_was_read():
    found = set[str]()
    for tree, name in of_python():
        found |= {*with_heirs(tree, name)}
    left = {one for one in found - READ if not is_way_round(one)}
    assert len(found) > 20
    private = {one for one in left if any(p.startswith("_") for p in one.split(".")[1:])}
    assert left - private == set()


BY_A_TEXT_THERE = BY_A_TEXT - {"setattr"} | {"CDLL", "loads"}  # in others' libraries


def is_private(name: str) -> bool:
    return any(p.startswith("_") and not p.endswith("__") for p in name.split("."))


def test_what_other_vetted_libraries_do_by_a_text_is_a_way_round_or_was_read():
    home = Path(sysconfig.get_path("purelib"))
    found = set[str]()
    for library in OTHERS & {path.name for path in home.iterdir()}:
        for file in sorted((home / library).rglob("*.py")):
            parts = file.relative_to(home).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            if is_vetted(name) and not is_way_round(name) and "tests" not in parts:
                tree = ast.parse(file.read_text("utf-8", errors="replace"))
                found |= {*places(tree, name, BY_A_TEXT_THERE)}
    left = {one for one in found if not is_way_round(one) and not is_private(one)}
    left = {one for one in left if BY_TEXT_ATTRIBUTES.isdisjoint(one.split("."))}
    assert len(left) > 20
    assert left - READ_THERE == set()


SORTING = {"sorted", "sort", "nlargest", "nsmallest", "_nlargest"}
SORTED_THERE = {  # names and places of its own, or what is a way round under another name
    "ast._Unparser._str_literal_helper", "collections.UserList.sort",
    "asyncio.base_events.BaseEventLoop.default_exception_handler",
    "collections.Counter.most_common", "csv.Sniffer._guess_delimiter",
    "difflib.SequenceMatcher.get_matching_blocks", "enum.Enum.__dir__",
    "enum.Enum._generate_next_value_", "enum.EnumType.__dir__", "enum.EnumType.__new__",
    "enum.EnumType._convert_", "enum.Flag._iter_member_by_def_", "enum._old_convert_",
    "enum._simple_enum.convert_class", "enum._test_simple_enum",
    "functools._compose_mro", "json.encoder._make_iterencode._iterencode_dict", "locale",
    "logging.handlers.TimedRotatingFileHandler.getFilesToDelete", "shutil._make_zipfile",
    "timeit.main.format_time", "tokenize", "traceback.StackSummary.format_frame_summary",
    "tracemalloc.Snapshot.compare_to", "tracemalloc.Snapshot.statistics",
    "weakref.finalize._select_for_exit", "zipfile.PyZipFile.writepy", "zipfile.main.addToZip",
    "zoneinfo.__dir__",
    # of Python 3.13: ranks and sums over what was sorted; lengths; a message; places in a file;
    # the one name that is most like a misspelt one
    "traceback._compute_suggestion_error",
    "statistics._rank", "statistics.kde", "statistics.kde.cdf", "statistics.kde.pdf",
    "asyncio.streams.StreamReader.readuntil", "typing._ProtocolMeta.__subclasscheck__",
    "zipfile.ZipFile._RealGetContents",
}  # fmt: skip


def sorts(node: ast.AST, name: str) -> Iterator[str]:
    """The functions in which something is put in order by Python's own `sorted`, or as it does."""
    for part in ast.iter_child_nodes(node):
        is_inner = isinstance(part, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        inner = f"{name}.{part.name}" if is_inner else name
        if isinstance(part, ast.Call):
            called = getattr(part.func, "id", getattr(part.func, "attr", ""))
            yield from [inner] if called in SORTING else []
        yield from sorts(part, inner)


def test_what_python_sorts_for_others_goes_with_sorted():
    """A function written in C is not seen to run: so who forbids it forbids what calls it."""
    forbidden = QuestionRules(forbid=("sorted",)).forbidden
    found = set[str]()
    for tree, name in of_python():
        found |= {*sorts(tree, name)}
    left = {one for one in found if not any(covers(entry, one) for entry in forbidden)}
    assert len(found) > 20
    assert left - SORTED_THERE == set()
