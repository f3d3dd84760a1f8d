"""What rules forbid as an idea, "any convolution": torch's operators that are, or hold, one.

A rule that names functions one by one forgets some, as torch has an idea under many names: for
other devices, in other layouts, fused with a second step, as the slope of something else. So an
idea is written down here once, with all its operators, and a rule names the idea. Names are without
the marks that tell implementations apart (`watch.bare`). A test goes over all of the installed
torch's operators: whose name has one of an idea's stems is of that idea, or is said to be harmless.
"""

from dataclasses import dataclass

MARK = "any "


@dataclass(frozen=True)
class Idea:
    """Operators that compute one thing."""

    stems: str  # a regular expression; what it is found in has to be in one of the two lists
    operators: tuple[str, ...]
    harmless: tuple[str, ...]  # of another idea, although they are called so
    functions: tuple[str, ...] = ()  # and what is none of torch's operators, but written in Python
    others: tuple[str, ...] = ()  # and what it is called elsewhere, as rules write it


# fmt: off
WEIGHING = (
    "multi_head_attention", "triton_multi_head_attention", "triton_scaled_dot_attention",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_math", "scaled_dot_product_attention_math_for_mps",
    "scaled_dot_product_cudnn_attention", "scaled_dot_product_cudnn_attention_backward",
    "scaled_dot_product_efficient_attention",
    "scaled_dot_product_efficient_attention_backward",
    "scaled_dot_product_flash_attention", "scaled_dot_product_flash_attention_backward",
    "scaled_dot_product_flash_attention_for_cpu",
    "scaled_dot_product_flash_attention_for_cpu_backward",
    "scaled_dot_product_fused_attention_overrideable",
    "scaled_dot_product_fused_attention_overrideable_backward",
    "flash_attention_forward", "flash_attention_forward_no_dropout_inplace",
    "flash_attention_backward", "efficient_attention_forward",
    "efficient_attention_backward", "cudnn_attention_forward", "cudnn_attention_backward",
)
# and what holds both, and is no operator but written in Python
IN_PYTHON = ("nn.attention.flex_attention", "nn.attention.varlen")
SORTING = (
    "sort", "sorted", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian", "mode",
    "quantile", "nanquantile", "unique", "unique2", "unique_dim",
)
IDEAS = {
    "softmax": Idea(
        r"softmax|attention|transformer|cross_entropy",
        (
            "softmax", "log_softmax", "softmax_backward", "softmax_backward_data",
            "log_softmax_backward_data", "nested_tensor_softmax_with_shape", "cross_entropy_loss",
            "transformer_encoder_layer_fwd", *WEIGHING,
        ),
        # of one number, by a sigmoid
        ("binary_cross_entropy", "binary_cross_entropy_backward",
         "binary_cross_entropy_with_logits"),
        IN_PYTHON,
    ),
    "weighing by scores": Idea(r"attention", WEIGHING, (), IN_PYTHON),
    "product of matrices": Idea(
        r"matmul|mm($|_)|mv$|(^|_|^bi|^tri)linear($|_)|dot$|inner",
        (
            "addbmm", "addmm", "addmm_activation", "addmv", "baddbmm", "bilinear", "bmm",
            "chain_matmul",
            "cslt_sparse_mm", "dot", "dyn_quant_matmul_4bit",
            "embedding_bag", "embedding_bag_forward_only",  # rows of one, with weights of each
            "fbgemm_linear_fp16_weight",
            "fbgemm_linear_fp16_weight_fp32_activation", "fbgemm_linear_int8_weight",
            "fbgemm_linear_int8_weight_fp32_activation", "foreach_mm", "grouped_mm", "hspmm",
            "inner", "int_mm", "linear", "linear_backward", "linear_backward_input",
            "linear_backward_weights", "matmul", "matmul_backward", "mixed_dtypes_linear", "mm",
            "mm_reduce_impl", "mm_reduce_impl_backward", "multi_dot", "mv", "sampled_addmm",
            "scaled_grouped_mm", "scaled_grouped_mm_v2", "scaled_mm", "scaled_mm_v2",
            "semi_structured_addmm", "semi_structured_linear", "semi_structured_mm", "smm",
            "sparse_matmul", "sspaddmm", "tensordot", "trilinear", "vdot", "vecdot",
            "weight_int4pack_mm", "weight_int4pack_mm_for_cpu",
            "weight_int4pack_mm_with_scales_and_zeros",
            "weight_int8pack_mm", "wrapped_quantized_linear_prepacked",
        ),
        (
            # other ways to keep the same numbers, and a search for the fastest
            "cslt_sparse_mm_search", "fbgemm_linear_quantize_weight", "wrapped_linear_prepack",
            "fbgemm_pack_gemm_matrix_fp16", "fbgemm_pack_quantized_matrix",
            "compute_linear_combination",
        ),
    ),
    "norm": Idea(
        r"norm",
        (
            "layer_norm", "layer_norm_backward", "group_norm", "group_norm_backward",
            "instance_norm", "rms_norm", "fused_rms_norm", "fused_rms_norm_backward",
            "batch_norm", "batch_norm_backward", "batch_norm_backward_elemt",
            "batch_norm_backward_reduce", "batch_norm_elemt", "batch_norm_gather_stats",
            "batch_norm_gather_stats_with_counts", "batch_norm_impl_index",
            "batch_norm_impl_index_backward", "batch_norm_legit", "batch_norm_legit_functional",
            "batch_norm_legit_no_training", "batch_norm_no_update", "batch_norm_stats",
            "batch_norm_update_stats", "batch_norm_with_update",
            "batch_norm_with_update_functional", "cudnn_batch_norm", "cudnn_batch_norm_backward",
            "miopen_batch_norm", "miopen_batch_norm_backward", "quantized_batch_norm",
        ),
        (
            # lengths, and what they limit or split off
            "norm", "foreach_norm", "frobenius_norm", "matrix_norm", "norm_except_dim",
            "nuclear_norm", "vector_norm", "renorm", "embedding_renorm",
            "no_grad_embedding_renorm", "weight_norm", "weight_norm_differentiable_backward",
            "weight_norm_interface", "weight_norm_interface_backward",
            # draws from a distribution
            "log_normal", "normal", "normal_functional", "no_grad_normal", "philox_normal",
        ),
    ),
    "convolution": Idea(
        r"conv",
        (
            "conv1d", "conv2d", "conv3d", "conv_depthwise2d", "conv_depthwise3d", "conv_tbc",
            "conv_tbc_backward", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
            "convolution", "convolution_backward", "convolution_backward_overrideable",
            "convolution_double_backward", "convolution_mode", "convolution_overrideable",
            "cudnn_convolution", "cudnn_convolution_add_relu", "cudnn_convolution_relu",
            "cudnn_convolution_transpose", "miopen_convolution", "miopen_convolution_add_relu",
            "miopen_convolution_relu", "miopen_convolution_transpose",
            "miopen_depthwise_convolution", "mps_convolution", "mps_convolution_backward",
            "mps_convolution_transpose", "mps_convolution_transpose_backward",
            "nnpack_spatial_convolution", "slow_conv2d_backward", "slow_conv2d_forward",
            "slow_conv3d", "slow_conv3d_forward", "slow_conv_dilated2d", "slow_conv_dilated3d",
            "slow_conv_transpose2d", "slow_conv_transpose3d", "thnn_conv2d",
        ),
        (
            # other ways to keep the same numbers
            "convert_indices_from_coo_to_csr", "convert_indices_from_csr_to_coo",
            "convert_weight_to_int4pack", "convert_weight_to_int4pack_for_cpu",
            "reorder_conv2d_weight", "reorder_conv3d_weight",
        ),
    ),
    "loss of labels": Idea(
        r"nll_loss|cross_entropy",
        (
            "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss_forward",
            "nll_loss_backward", "nll_loss2d", "nll_loss2d_forward", "nll_loss2d_backward",
        ),
        # without labels that are a class
        ("binary_cross_entropy", "binary_cross_entropy_backward",
         "binary_cross_entropy_with_logits", "poisson_nll_loss"),
    ),
    "solving": Idea(
        r"solve|lstsq|inv|svd|(^|_)qr$|geqrf|orgqr|ormqr|householder|(^|_)eigh?$",
        (
            "solve", "solve_ex", "solve_triangular", "triangular_solve", "lu_solve", "ldl_solve",
            "cholesky_solve", "cholesky_solve_helper", "spsolve", "tensorsolve", "lstsq", "pinv",
            "pinverse", "inv", "inv_ex", "inverse", "tensorinv", "cholesky_inverse", "svd",
            "svdvals", "qr", "geqrf", "orgqr", "ormqr", "householder_product", "eig", "eigh",
        ),
        ("resolve_conj", "resolve_neg", "erfinv", "slice_inverse"),
        (),
        (
            "numpy.linalg.solve", "scipy.linalg.blas", "scipy.linalg.lapack", "scipy.optimize",
            "scipy.sparse.linalg", *(f"scipy.linalg.{name}" for name in (
                "solve", "solve_banded", "solveh_banded", "solve_circulant", "solve_toeplitz",
                "cho_solve", "cho_solve_banded", "get_blas_funcs", "get_lapack_funcs",
            )),
        ),
    ),
    "sorting": Idea(
        r"sort|topk|kthvalue|median|quantile|unique|(^|_)mode$",
        SORTING,
        (
            # a search in what is in order, neighbours that are equal, and padding
            "searchsorted", "unique_consecutive", "unique_dim_consecutive", "convolution_mode",
        ),
        (),
        (
            "sorted", ".sort", "heapq", "bisect.insort", "bisect.insort_left",
            "bisect.insort_right", "collections.Counter.most_common", "graphlib",
            "queue.PriorityQueue", "statistics.median", "statistics.median_low",
            "statistics.median_high", "statistics.quantiles",
            *(f"numpy.{name}" for name in (
                "sort", "argsort", "lexsort", "partition", "argpartition", "sort_complex", "unique",
                "unique_all", "unique_counts", "unique_inverse", "unique_values", "median",
                "nanmedian", "percentile", "nanpercentile", "quantile", "nanquantile", "union1d",
                "intersect1d", "setdiff1d", "setxor1d",
            )),
        ),
    ),
}
# fmt: on


def in_full(entry: str) -> tuple[str, ...]:
    """What an entry of a rule stands for: an idea for its operators, anything else for itself.

    Raises KeyError for an idea that is not here.
    """
    if not entry.startswith(MARK):
        return (entry,)
    idea = IDEAS[entry.removeprefix(MARK)]
    return (*(f"torch.{name}" for name in (*idea.operators, *idea.functions)), *idea.others)
