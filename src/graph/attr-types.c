/*
 * The types of attributes. Operators that share the name of an attribute share
 * its type, with the few exceptions that list two, so names are enough: facts of
 * the ONNX operator changelog (all versions up to opset 28) and of ONNX Runtime's
 * contrib operators. A value of another type would be passed over in silence,
 * and the operator run with its default.
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/private.h"

struct attr_types {
	const char *name;
	unsigned types;
};

#define FLOAT (1u << RG_ATTR_FLOAT)
#define INT (1u << RG_ATTR_INT)
#define STRING (1u << RG_ATTR_STRING)
#define TENSOR (1u << RG_ATTR_TENSOR)
#define GRAPH (1u << RG_ATTR_GRAPH)
#define FLOATS (1u << RG_ATTR_FLOATS)
#define INTS (1u << RG_ATTR_INTS)
#define STRINGS (1u << RG_ATTR_STRINGS)

/* Each sorted by name. */
static const struct attr_types standard[] = {
	{ "activation", STRING }, { "activation_alpha", FLOATS }, { "activation_beta", FLOATS },
	{ "activations", STRINGS }, { "align_corners", INT }, { "allowzero", INT }, { "alpha", FLOAT },
	{ "antialias", INT }, { "approximate", STRING }, { "auto_pad", STRING }, { "axes", INTS },
	{ "axis", INT }, { "batch_axis", INT }, { "batch_dims", INT }, { "beta", FLOAT },
	{ "bias", FLOAT }, { "block_size", INT }, { "blocksize", INT }, { "body", GRAPH },
	{ "broadcast", INT }, { "case_change_action", STRING }, { "ceil_mode", INT },
	{ "center_point_box", INT }, { "chunk_size", INT }, { "clip", FLOAT }, { "consumed_inputs", INTS },
	{ "coordinate_transformation_mode", STRING }, { "count_include_pad", INT },
	{ "cubic_coeff_a", FLOAT }, { "delimiter", STRING }, { "detect_negative", INT },
	{ "detect_positive", INT }, { "dilations", INTS }, { "direction", STRING }, { "directions", INTS },
	{ "dtype", INT }, { "else_branch", GRAPH }, { "end", INT }, { "ends", INTS }, { "epsilon", FLOAT },
	{ "equation", STRING }, { "exclude_outside", INT }, { "exclusive", INT },
	{ "extrapolation_value", FLOAT }, { "fmod", INT }, { "gamma", FLOAT }, { "group", INT },
	{ "height_scale", FLOAT }, { "hidden_size", INT }, { "high", FLOAT }, { "ignore_index", INT },
	{ "input_forget", INT }, { "interleaved", INT }, { "inverse", INT }, { "is_case_sensitive", INT },
	{ "is_causal", INT }, { "is_test", INT }, { "k", INT }, { "keep_aspect_ratio_policy", STRING },
	{ "keepdims", INT }, { "kernel_shape", INTS }, { "kv_num_heads", INT }, { "lambd", FLOAT },
	{ "largest", INT }, { "layout", INT }, { "linear_before_reset", INT }, { "locale", STRING },
	{ "low", FLOAT }, { "max", FLOAT }, { "max_gram_length", INT }, { "max_skip_count", INT },
	{ "maxsplit", INT }, { "mean", FLOAT }, { "min", FLOAT }, { "min_gram_length", INT },
	{ "mode", STRING }, { "momentum", FLOAT }, { "nearest_mode", STRING }, { "new_axis", INT },
	{ "ngram_counts", INTS }, { "ngram_indexes", INTS }, { "noop_with_empty_axes", INT },
	{ "num_groups", INT }, { "num_heads", INT }, { "num_outputs", INT }, { "num_scan_inputs", INT },
	{ "offset_group", INT }, { "onesided", INT }, { "output_datatype", INT }, { "output_dtype", INT },
	{ "output_height", INT }, { "output_padding", INTS }, { "output_sequence", INT },
	{ "output_shape", INTS }, { "output_width", INT }, { "p", FLOAT | INT },
	{ "padding_mode", STRING }, { "paddings", INTS }, { "pads", INTS }, { "pattern", STRING },
	{ "periodic", INT }, { "perm", INTS }, { "pixel_format", STRING }, { "pool_int64s", INTS },
	{ "pool_strings", STRINGS }, { "pooled_shape", INTS }, { "precision", INT },
	{ "q_num_heads", INT }, { "qk_matmul_output_mode", INT }, { "ratio", FLOAT },
	{ "reduction", STRING }, { "reverse", INT }, { "rotary_embedding_dim", INT },
	{ "round_mode", STRING }, { "sample_size", INT }, { "sampling_ratio", INT }, { "saturate", INT },
	{ "scale", FLOAT }, { "scales", FLOATS }, { "scan_input_axes", INTS },
	{ "scan_input_directions", INTS }, { "scan_output_axes", INTS },
	{ "scan_output_directions", INTS }, { "seed", FLOAT | INT }, { "select_last_index", INT },
	{ "shape", INTS }, { "size", INT }, { "softcap", FLOAT }, { "softmax_precision", INT },
	{ "sorted", INT }, { "spatial", INT }, { "spatial_scale", FLOAT }, { "split", INTS },
	{ "start", INT }, { "starts", INTS }, { "stash_type", INT }, { "stopwords", STRINGS },
	{ "storage_order", INT }, { "strides", INTS }, { "then_branch", GRAPH }, { "time_axis", INT },
	{ "to", INT | STRING }, { "training_mode", INT }, { "transA", INT }, { "transB", INT },
	{ "update_rule", STRING }, { "upper", INT }, { "value", FLOAT | TENSOR }, { "value_float", FLOAT },
	{ "value_floats", FLOATS }, { "value_int", INT }, { "value_ints", INTS },
	{ "value_string", STRING }, { "value_strings", STRINGS }, { "weights", FLOATS },
	{ "width_scale", FLOAT },
};

/* com.microsoft, where it differs from the above or adds to it. */
static const struct attr_types contrib[] = {
	{ "DLC", STRING }, { "K", INT }, { "N", INT }, { "Nkv", INT }, { "Nq", INT },
	{ "accuracy_level", INT }, { "activation", INT | STRING }, { "activation_alpha", FLOAT | FLOATS },
	{ "activation_axis", INT }, { "activation_beta", FLOAT | FLOATS }, { "activation_gamma", FLOAT },
	{ "activation_params", FLOATS }, { "activation_type", STRING }, { "attention_mode", STRING },
	{ "auxiliary_cache_layout", STRING }, { "auxiliary_kv_shared", INT },
	{ "beginning_timestamp_token_id", INT }, { "beta_activation", STRING }, { "bfp_type", INT },
	{ "bits", INT }, { "blk_quant_type", INT }, { "block_dim", INT }, { "causal", INT },
	{ "channels_last", INT }, { "char_embedding_size", INT }, { "compress_ratio", INT },
	{ "conv_window_size", INT }, { "custom", INT }, { "d_state", INT }, { "decoder", GRAPH },
	{ "decoder_output_cross_qk", INT }, { "decoder_start_token_id", INT }, { "delta_offset", INT },
	{ "dilation", INT }, { "dim", INT }, { "do_rotary", INT }, { "down_type", INT },
	{ "early_stopping", INT }, { "embed_mode", INT }, { "embedding_size", INT }, { "encoder", GRAPH },
	{ "eos_token_id", INT }, { "ep_cache_context", STRING }, { "ep_sdk_version", STRING },
	{ "expert_weight_bits", INT }, { "fc1_expert_weight_bits", INT },
	{ "fc2_expert_weight_bits", INT }, { "fc3_expert_weight_bits", INT }, { "filter_value", FLOAT },
	{ "flatten_batch", INT }, { "gate_activation", STRING }, { "gate_div", FLOAT },
	{ "gate_lower_bound", FLOAT }, { "gate_mul", FLOAT }, { "gate_type", INT }, { "gather_axis", INT },
	{ "group_size", INT }, { "group_topk", INT }, { "groups", INT },
	{ "hardware_architecture", STRING }, { "head_dim", INT }, { "head_rows", INT },
	{ "head_weight_scale", FLOAT }, { "heads", INT }, { "index_topk", INT },
	{ "indexshare_state_policy", STRING }, { "init_decoder", GRAPH }, { "input_channel_offset", INT },
	{ "input_channels", INT }, { "input_start", INT }, { "input_width", INT },
	{ "is_bidirectional", INT }, { "is_inner_broadcast", INT }, { "is_packed_batching", INT },
	{ "isinf_only", INT }, { "isnan_only", INT }, { "k_cache_dtype", STRING },
	{ "k_norm_epsilon", FLOAT }, { "k_quant_type", STRING }, { "kv_cache_bit_width", INT },
	{ "kv_cache_layout", STRING }, { "limit", FLOAT }, { "local_window_size", INT },
	{ "lora_bits", INT }, { "lora_block_size", INT }, { "main_context", INT }, { "mark", INT },
	{ "mask_filter_value", FLOAT }, { "mask_index_type", INT }, { "max_distance", INT },
	{ "max_ngram_size", INT }, { "max_output_entries", INT }, { "max_size", INT },
	{ "metric", STRING }, { "min_ngram_size", INT }, { "min_tokens_to_keep", INT },
	{ "mincharnum", INT }, { "model_type", INT }, { "mrope_layout", INT }, { "mrope_section", INTS },
	{ "n_group", INT }, { "n_groups", INT }, { "n_head_per_ngram", INT }, { "ndim", INT },
	{ "ngram_size", INT }, { "no_repeat_ngram_size", INT }, { "no_speech_token_id", INT },
	{ "no_timestamps_token_id", INT }, { "normalize_routing_weights", INT }, { "normalized", INT },
	{ "notes", STRING }, { "num_branches", INT }, { "onnx_model_filename", STRING }, { "opset", INT },
	{ "order_A", INT }, { "order_B", INT }, { "order_X", INT }, { "order_Y", INT },
	{ "order_global_weight", INT }, { "order_input", INT }, { "order_output", INT },
	{ "order_weight", INT }, { "output_bf16", INT }, { "output_fp16", INT }, { "output_qk", INT },
	{ "packed_type", INT }, { "pad_id", INT }, { "pad_token_id", INT }, { "pad_value", STRING },
	{ "partition_name", STRING }, { "past_present_share_buffer", INT }, { "policy_mode", STRING },
	{ "positive", INT }, { "presence_penalty", FLOAT }, { "q_norm_epsilon", FLOAT },
	{ "qk_l2_norm", INT }, { "qk_norm_epsilon", FLOAT }, { "qk_output", INT },
	{ "qkv_hidden_sizes", INTS }, { "quant_type", INT | STRING }, { "quantize_axis", INT },
	{ "reduction_scale", FLOAT }, { "reset_on_eos", INT }, { "rotary_interleaved", INT },
	{ "rotary_offset", INT }, { "round_activation", INT }, { "routed_scaling_factor", FLOAT },
	{ "router_sentinel", FLOAT }, { "router_size", INT }, { "routing_epsilon", FLOAT },
	{ "seed", INT }, { "selected_kv_source", STRING }, { "separators", STRINGS },
	{ "signal_ndim", INT }, { "silu_alpha", FLOAT }, { "sliding_window_cache", INT },
	{ "smooth_softmax", INT }, { "snpe_version", STRING }, { "source", STRING },
	{ "sparse_block_size", INT }, { "start_of_lm_token_id", INT }, { "state_capacity", INT },
	{ "state_channels_last", INT }, { "state_length", INT }, { "state_update_capacity", INT },
	{ "state_window", INT }, { "step", INT }, { "swiglu_fusion", INT }, { "swiglu_limit", FLOAT },
	{ "swiglu_limit_after_activation", INT }, { "target_device", STRING }, { "temperature", FLOAT },
	{ "time_step_min", FLOAT }, { "to", INT }, { "token_budget", INT }, { "tokenexp", STRING },
	{ "top_k", INT }, { "top_p", FLOAT }, { "topk_group", INT }, { "transBatchA", INT },
	{ "transBatchB", INT }, { "transcribe_token_id", INT }, { "translate_token_id", INT },
	{ "unidirectional", INT }, { "up_type", INT }, { "use_fp32_arithmetic", INT },
	{ "use_sparse_mixer", INT }, { "v_cache_dtype", STRING }, { "v_head_size", INT },
	{ "v_quant_type", STRING }, { "vocab_size", INT }, { "weight_prepacked", INT },
	{ "weights_prepacked", INT }, { "window", INT },
};

/* ai.onnx.ml: these alone. */
static const struct attr_types ml[] = {
	{ "aggregate_function", INT | STRING }, { "base_values", FLOATS },
	{ "base_values_as_tensor", TENSOR }, { "cast_to", STRING }, { "cats_int64s", INTS },
	{ "cats_strings", STRINGS }, { "class_ids", INTS }, { "class_nodeids", INTS },
	{ "class_treeids", INTS }, { "class_weights", FLOATS }, { "class_weights_as_tensor", TENSOR },
	{ "classes_strings", STRINGS }, { "classlabels_int64s", INTS }, { "classlabels_ints", INTS },
	{ "classlabels_strings", STRINGS }, { "coefficients", FLOATS }, { "default_float", FLOAT },
	{ "default_int64", INT }, { "default_string", STRING }, { "default_tensor", TENSOR },
	{ "imputed_value_floats", FLOATS }, { "imputed_value_int64s", INTS }, { "inputdimensions", INTS },
	{ "int64_vocabulary", INTS }, { "intercepts", FLOATS }, { "kernel_params", FLOATS },
	{ "kernel_type", STRING }, { "keys_floats", FLOATS }, { "keys_int64s", INTS },
	{ "keys_strings", STRINGS }, { "keys_tensor", TENSOR }, { "leaf_targetids", INTS },
	{ "leaf_weights", TENSOR }, { "map_form", STRING }, { "max_map", INT },
	{ "membership_values", TENSOR }, { "multi_class", INT }, { "n_supports", INT },
	{ "n_targets", INT }, { "nodes_falseleafs", INTS }, { "nodes_falsenodeids", INTS },
	{ "nodes_featureids", INTS }, { "nodes_hitrates", TENSOR | FLOATS },
	{ "nodes_hitrates_as_tensor", TENSOR }, { "nodes_missing_value_tracks_true", INTS },
	{ "nodes_modes", TENSOR | STRINGS }, { "nodes_nodeids", INTS }, { "nodes_splits", TENSOR },
	{ "nodes_treeids", INTS }, { "nodes_trueleafs", INTS }, { "nodes_truenodeids", INTS },
	{ "nodes_values", FLOATS }, { "nodes_values_as_tensor", TENSOR }, { "norm", STRING },
	{ "offset", FLOATS }, { "one_class", INT }, { "post_transform", INT | STRING },
	{ "prob_a", FLOATS }, { "prob_b", FLOATS }, { "replaced_value_float", FLOAT },
	{ "replaced_value_int64", INT }, { "rho", FLOATS }, { "scale", FLOATS },
	{ "string_vocabulary", STRINGS }, { "support_vectors", FLOATS }, { "target_ids", INTS },
	{ "target_nodeids", INTS }, { "target_treeids", INTS }, { "target_weights", FLOATS },
	{ "target_weights_as_tensor", TENSOR }, { "targets", INT }, { "threshold", FLOAT },
	{ "tree_roots", INTS }, { "values_floats", FLOATS }, { "values_int64s", INTS },
	{ "values_strings", STRINGS }, { "values_tensor", TENSOR }, { "vectors_per_class", INTS },
	{ "zeros", INT },
};

static int compare(const void *key, const void *entry)
{
	return strcmp(key, ((const struct attr_types *)entry)->name);
}

#define FIND(table, name) bsearch(name, table, sizeof(table) / sizeof(table[0]), sizeof(table[0]), compare)

static const char *type_name(enum rg_attr_type t)
{
	static const char *const names[] = {
		[RG_ATTR_FLOAT] = "a float", [RG_ATTR_INT] = "an integer", [RG_ATTR_STRING] = "a string",
		[RG_ATTR_TENSOR] = "a tensor", [RG_ATTR_GRAPH] = "a graph", [RG_ATTR_FLOATS] = "a list of floats",
		[RG_ATTR_INTS] = "a list of integers", [RG_ATTR_STRINGS] = "a list of strings",
	};

	return t >= RG_ATTR_FLOAT && t <= RG_ATTR_STRINGS ? names[t] : "of a type without a name";
}

int rg_graph_check_attrs(const struct rg_node *n, struct rg_error *err)
{
	for (int i = 0; i < n->n_attrs; i++) {
		const struct rg_attr *a = &n->attrs[i];
		bool is_ml = strcmp(n->domain, "ai.onnx.ml") == 0;
		const struct attr_types *t = is_ml ? FIND(ml, a->name) :
					     n->domain[0] ? FIND(contrib, a->name) : NULL;
		int want = RG_ATTR_FLOAT;

		if (!t && !is_ml)
			t = FIND(standard, a->name);
		if (!t || t->types >> a->type & 1)
			continue;
		while (!(t->types >> want & 1))
			want++;
		rg_error_set(err, -EINVAL, "attribute '%s' of node '%s' (%s) is %s, but must be %s", a->name, n->name,
			     n->op_type, type_name(a->type), type_name((enum rg_attr_type)want));
		return rg_error_hint(err, "the file is damaged; export the model again");
	}
	return 0;
}
