// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/cuda/compile/template_graphs.h"

namespace ingot::core::cuda {
namespace {

constexpr const char* kChannelsLast = "{0, 2, 3, 1}";
constexpr const char* kLinear =
    "graph g(%x: HALF[S,64], %w: HALF[48,64], %b: HALF[48]) {\n %y = linear(%x, %w, %b) : HALF[S,48]\n "
    "return %y\n}";
constexpr const char* kAttention =
    "graph g(%q: HALF[2,3,S,32], %k: HALF[2,3,T,32], %v: HALF[2,3,T,16]) {\n"
    " %y = attention(%q, %k, %v) {scale=0.3} : HALF[2,3,S,16]\n return %y\n}";

const Template kTemplates[] = {
    {"linear_one_row", kLinear, {{"S", 1}}},
    {"linear_few_rows", kLinear, {{"S", 13}}},
    {"linear_many_rows", kLinear, {{"S", 300}}},
    {"linear_unaligned", kLinear, {{"S", 33}}, 1},
    {"linear_deep",
     "graph g(%x: HALF[2,5,1000], %w: HALF[24,1000]) {\n %y = linear(%x, %w) : HALF[2,5,24]\n return %y\n}"},
    {"linear_of_groups",
     "graph g(%x: HALF[70,600], %w: HALF[104,600], %b: HALF[104]) {\n %y = linear(%x, %w, %b) : "
     "HALF[70,104]\n "
     "return %y\n}"},
    {"linear_of_groups_deep",
     "graph g(%x: HALF[65,6000], %w: HALF[40,6000]) {\n %y = linear(%x, %w) : HALF[65,40]\n return %y\n}"},
    {"linear_large",
     "graph g(%x: HALF[1500,72], %w: HALF[1200,72]) {\n %y = linear(%x, %w) : HALF[1500,1200]\n return "
     "%y\n}"},
    {"linear_in_turns",
     "graph g(%x: HALF[1100,136], %w: HALF[160,136], %b: HALF[160]) {\n %y = linear(%x, %w, %b) : "
     "HALF[1100,160]\n return %y\n}"},
    {"linear_in_turns_unaligned",
     "graph g(%x: HALF[1025,64], %w: HALF[32,64], %b: HALF[32]) {\n %y = linear(%x, %w, %b) : "
     "HALF[1025,32]\n return %y\n}",
     {},
     1},
    {"linear_together",
     "graph g(%x: HALF[700,200], %w: HALF[416,200], %b: HALF[416]) {\n %y = linear(%x, %w, %b) : "
     "HALF[700,416]\n return %y\n}"},
    {"linear_together_deep",
     "graph g(%x: HALF[260,600], %w: HALF[416,600]) {\n %y = linear(%x, %w) : HALF[260,416]\n return "
     "%y\n}"},
    {"linear_of_a_row",
     "graph g(%x: HALF[1,776], %w: HALF[50,776], %b: HALF[50]) {\n %y = linear(%x, %w, %b) : HALF[1,50]\n "
     "return %y\n}"},
    {"linear_of_three_rows",
     "graph g(%x: HALF[3,5000], %w: HALF[37,5000]) {\n %y = linear(%x, %w) : HALF[3,37]\n return %y\n}"},
    {"linear_of_rows_unaligned",
     "graph g(%x: HALF[2,40], %w: HALF[5000,40]) {\n %y = linear(%x, %w) : HALF[2,5000]\n return %y\n}",
     {},
     1},
    {"normalized_row",
     "graph g(%x: HALF[1,192], %w: HALF[48,192], %b: HALF[48], %s: f32[48]) {\n"
     " %y = normalized_linear(%x, %w, %b, %s) {epsilon=0.00001} : HALF[1,48]\n return %y\n}"},
    {"normalized_rows_unaligned",
     "graph g(%x: HALF[4,40], %w: HALF[48,40], %s: f32[48]) {\n"
     " %y = normalized_linear(%x, %w, none, %s) {epsilon=0.00001} : HALF[4,48]\n return %y\n}",
     {},
     2},
    {"normalized_by_root_mean_square",
     "graph g(%x: HALF[3,1,1000], %w: HALF[37,1000]) {\n"
     " %y = normalized_linear(%x, %w) {epsilon=0.001} : HALF[3,1,37]\n return %y\n}"},
    {"matmul_rows_of_b",
     "graph g(%a: HALF[3,S,40], %b: HALF[3,40,24]) {\n %y = matmul(%a, %b) : HALF[3,S,24]\n return %y\n}",
     {{"S", 70}}},
    {"matmul_columns_of_b",
     "graph g(%a: HALF[3,S,40], %b: HALF[3,40,24]) {\n %y = matmul(%a, %b) : HALF[3,S,24]\n return "
     "%y\n}",
     {{"S", 70}},
     0,
     {"", "{0, 2, 1}", ""}},
    {"matmul_of_any_columns",
     "graph g(%a: HALF[2,1100,64], %b: HALF[2,64,T in 8..96]) {\n %y = matmul(%a, %b) : HALF[2,1100,T]\n "
     "return %y\n}",
     {{"T", 43}},
     0,
     {"", "{0, 2, 1}", ""}},
    {"matmul_of_many_rows",
     "graph g(%a: HALF[2,1090,72], %b: HALF[2,72,200]) {\n %y = matmul(%a, %b) : HALF[2,1090,200]\n "
     "return %y\n}",
     {},
     0,
     {"", "{0, 2, 1}", ""}},
    {"convolution_of_many_pixels",
     "graph g(%x: HALF[5,64,17,15], %w: HALF[24,64,3,1], %b: HALF[24]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[1, 0], dilation=[1, 1]} : HALF[5,24,17,15]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"matmul_shared_b",
     "graph g(%a: HALF[2,3,17,16], %b: HALF[1,16,8]) {\n %y = matmul(%a, %b) : HALF[2,3,17,8]\n return "
     "%y\n}"},
    {"matmul_of_groups",
     "graph g(%a: HALF[2,3,S,136], %b: HALF[3,136,24]) {\n %y = matmul(%a, %b) : HALF[2,3,S,24]\n return "
     "%y\n}",
     {{"S", 70}},
     0,
     {"{0, 2, 1, 3}", "{0, 2, 1}", "{0, 2, 1, 3}"}},
    {"matmul_unaligned",
     "graph g(%a: HALF[33,16], %b: HALF[16,40]) {\n %y = matmul(%a, %b) : HALF[33,40]\n return %y\n}",
     {},
     3},
    {"convolution",
     "graph g(%x: HALF[N,16,9,7], %w: HALF[24,16,3,3], %b: HALF[24]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[1, 1], dilation=[1, 1]} : HALF[N,24,9,7]\n"
     " return %y\n}",
     {{"N", 2}},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"convolution_strided",
     "graph g(%x: HALF[2,64,11,13], %w: HALF[8,64,3,2]) {\n"
     " %y = convolution(%x, %w) {stride=[2, 3], padding=[2, 0], dilation=[2, 1]} : HALF[2,8,6,4]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, kChannelsLast, kChannelsLast}},
    {"convolution_of_images",
     "graph g(%x: HALF[N,64,7,9], %w: HALF[40,64,3,3], %b: HALF[40]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[2, 1], padding=[1, 1], dilation=[1, 1]} : HALF[N,40,4,9]\n"
     " return %y\n}",
     {{"N", 5}},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"convolution_of_window_rows",
     "graph g(%x: HALF[N,16,9,20], %w: HALF[40,16,3,4], %b: HALF[40]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[2, 1], padding=[1, 0], dilation=[1, 1]} : HALF[N,40,5,17]\n"
     " return %y\n}",
     {{"N", 3}},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"convolution_of_strided_window_rows",
     "graph g(%x: HALF[2,32,12,21], %w: HALF[24,32,2,4]) {\n"
     " %y = convolution(%x, %w) {stride=[1, 3], padding=[0, 0], dilation=[4, 1]} : HALF[2,24,8,6]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, kChannelsLast, kChannelsLast}},
    {"convolution_of_many_points",
     "graph g(%x: HALF[2,24,9,7], %w: HALF[16,24,1,1]) {\n"
     " %y = convolution(%x, %w) {stride=[1, 1], padding=[0, 0], dilation=[1, 1]} : HALF[2,16,9,7]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, kChannelsLast, kChannelsLast}},
    {"convolution_of_points",
     "graph g(%x: HALF[1,40,5,5], %w: HALF[16,40,1,1]) {\n"
     " %y = convolution(%x, %w) {stride=[1, 1], padding=[0, 0], dilation=[1, 1]} : HALF[1,16,5,5]\n"
     " return %y\n}",
     {},
     1,
     {kChannelsLast, kChannelsLast, kChannelsLast}},
    {"depthwise",
     "graph g(%x: HALF[N,24,9,7], %w: HALF[24,1,5,5], %b: HALF[24]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[2, 2], dilation=[1, 1], groups=24} : "
     "HALF[N,24,9,7]\n"
     " return %y\n}",
     {{"N", 2}},
     0,
     {kChannelsLast, "{1, 2, 3, 0}", "", kChannelsLast}},
    {"depthwise_of_many",
     "graph g(%x: HALF[1,64,50,50], %w: HALF[64,1,7,7]) {\n"
     " %y = convolution(%x, %w) {stride=[1, 1], padding=[3, 3], dilation=[1, 1], groups=64} : "
     "HALF[1,64,50,50]\n"
     " return %y\n}",
     {},
     1,
     {kChannelsLast, "{1, 2, 3, 0}", kChannelsLast}},
    {"depthwise_of_neighbours",
     "graph g(%x: HALF[1,512,64,67], %w: HALF[512,1,5,5], %b: HALF[512]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[2, 2], dilation=[1, 1], groups=512} : "
     "HALF[1,512,64,67]\n return %y\n}",
     {},
     0,
     {kChannelsLast, "{1, 2, 3, 0}", "", kChannelsLast}},
    {"depthwise_of_strided_neighbours",
     "graph g(%x: HALF[1,512,70,150], %w: HALF[512,1,5,5]) {\n"
     " %y = convolution(%x, %w) {stride=[2, 2], padding=[1, 3], dilation=[1, 2], groups=512} : "
     "HALF[1,512,34,74]\n return %y\n}",
     {},
     0,
     {kChannelsLast, "{1, 2, 3, 0}", kChannelsLast}},
    {"depthwise_strided",
     "graph g(%x: HALF[2,8,40,43], %w: HALF[8,1,5,6]) {\n"
     " %y = convolution(%x, %w) {stride=[2, 3], padding=[4, 6], dilation=[2, 3], groups=8} : "
     "HALF[2,8,20,14]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, "{1, 2, 3, 0}", kChannelsLast}},
    {"attention", kAttention, {{"S", 37}, {"T", 150}}},
    {"attention_of_one_key", kAttention, {{"S", 1}, {"T", 1}}},
    {"attention_unaligned", kAttention, {{"S", 20}, {"T", 70}}, 2},
    {"attention_of_a_cache",
     "graph g(%q: HALF[1,6,1,64], %k: HALF[1,2,1000,64], %v: HALF[1,2,1000,64], %m: bool[1,1,1,1000]) {\n"
     " %y = attention(%q, %k, %v, %m) {scale=0, grouped=true} : HALF[1,6,1,64]\n return %y\n}"},
    {"attention_of_a_cache_of_some",
     "graph g(%q: HALF[3,2,32], %k: HALF[3,T,32], %v: HALF[3,T,48]) {\n"
     " %y = attention(%q, %k, %v) {scale=0.5, causal=true} : HALF[3,2,48]\n return %y\n}",
     {{"T", 700}}},
    {"attention_in_the_past",
     "graph g(%q: HALF[2,S,64], %k: HALF[2,S,64], %v: HALF[2,S,64]) {\n"
     " %y = attention(%q, %k, %v) {scale=0, causal=true} : HALF[2,S,64]\n return %y\n}",
     {{"S", 130}}},
    {"attention_of_groups",
     "graph g(%q: HALF[1,6,9,16], %k: HALF[1,2,80,16], %v: HALF[1,2,80,16]) {\n"
     " %y = attention(%q, %k, %v) {scale=0, grouped=true} : HALF[1,6,9,16]\n return %y\n}",
     {},
     0,
     {"{0, 2, 1, 3}", "", "{0, 2, 1, 3}", "{0, 2, 1, 3}"}},
    {"attention_with_mask",
     "graph g(%q: HALF[2,4,70,16], %k: HALF[2,4,90,16], %v: HALF[2,4,90,16], %m: HALF[2,1,70,90]) {\n"
     " %y = attention(%q, %k, %v, %m) {scale=0.5} : HALF[2,4,70,16]\n return %y\n}"},
    {"attention_with_mask_of_bools",
     "graph g(%q: HALF[1,24,210,16], %k: HALF[1,12,336,16], %v: HALF[1,12,336,16], %m: bool[1,1,210,336]) {\n"
     " %y = attention(%q, %k, %v, %m) {scale=0.2, grouped=true, empty_is_nan=true} : HALF[1,24,210,16]\n"
     " return %y\n}"},
    {"attention_with_mask_of_bools_unaligned",
     "graph g(%q: HALF[60,140,16], %k: HALF[60,80,16], %v: HALF[60,80,16], %m: bool[140,80]) {\n"
     " %y = attention(%q, %k, %v, %m) {scale=0.5} : HALF[60,140,16]\n return %y\n}",
     {},
     2},
    {"attention_of_some",
     "graph g(%q: HALF[4,20,16], %k: HALF[4,90,16], %v: HALF[4,90,16], %m: bool[20,90]) {\n"
     " %y = attention(%q, %k, %v, %m) {scale=0.5, empty_is_nan=true} : HALF[4,20,16]\n return %y\n}"},
    {"attention_of_a_new_row",
     "graph g(%q: HALF[1,6,1,64], %k: HALF[1,2,1000,64], %v: HALF[1,2,1000,64], %m: bool[1,1000], %p: "
     "i64[1], "
     "%a: HALF[1,2,1,64], %b: HALF[1,2,1,64]) {\n"
     " %y = cached_attention(%q, %k, %v, %m, %p, %a, %b) {scale=0, grouped=true} : HALF[1,6,1,64]\n"
     " return %y\n}"},
    {"attention_of_new_rows",
     "graph g(%q: HALF[3,2,20,32], %k: HALF[3,2,T,32], %v: HALF[3,2,T,48], %p: i32[3], %a: HALF[3,2,3,32], "
     "%b: HALF[3,2,3,48]) {\n"
     " %y = cached_attention(%q, %k, %v, none, %p, %a, %b) {scale=0.5} : HALF[3,2,20,48]\n return %y\n}",
     {{"T", 300}}},
    {"attention_of_new_rows_unaligned",
     "graph g(%q: HALF[2,1,32], %k: HALF[2,T,32], %v: HALF[2,T,32], %p: i32[1], %a: HALF[2,1,32], "
     "%b: HALF[2,1,32]) {\n"
     " %y = cached_attention(%q, %k, %v, none, %p, %a, %b) {scale=0.5} : HALF[2,1,32]\n return %y\n}",
     {{"T", 140}},
     2},
    {"attention_of_few_queries_in_parts",
     "graph g(%q: HALF[B,8,2,128], %k: HALF[B,4,T,128], %v: HALF[1,4,T,128]) {\n"
     " %y = attention(%q, %k, %v) {scale=0.1, grouped=true, causal=true} : HALF[B,8,2,128]\n"
     " return %y\n}",
     {{"B", 2}, {"T", 600}},
     0,
     {"{0, 2, 1, 3}", "", "", "{0, 2, 1, 3}"}},
    {"attention_of_few_new_rows",
     "graph g(%q: HALF[3,4,32], %k: HALF[3,T,32], %v: HALF[3,T,32], %m: bool[4,T], %p: i32[3], "
     "%a: HALF[3,3,32], %b: HALF[3,3,32]) {\n"
     " %y = cached_attention(%q, %k, %v, %m, %p, %a, %b) {scale=0.5} : HALF[3,4,32]\n return %y\n}",
     {{"T", 1100}},
     2},
    {"attention_of_many_rows",
     "graph g(%q: HALF[40,200,16], %k: HALF[40,90,16], %v: HALF[40,90,16]) {\n"
     " %y = attention(%q, %k, %v) {scale=0.5} : HALF[40,200,16]\n return %y\n}"},
    {"attention_of_rows_in_turn",
     "graph g(%q: HALF[2,330,16], %k: HALF[2,200,16], %v: HALF[2,200,16]) {\n"
     " %y = attention(%q, %k, %v) {scale=0.5, causal=true} : HALF[2,330,16]\n return %y\n}"},
    {"attention_of_rows_in_turn_unaligned",
     "graph g(%q: HALF[3,140,16], %k: HALF[3,197,16], %v: HALF[3,197,32]) {\n"
     " %y = attention(%q, %k, %v) {scale=0.5} : HALF[3,140,32]\n return %y\n}",
     {},
     2},
    {"attention_of_wide_rows",
     "graph g(%q: HALF[1,80,128], %k: HALF[1,150,128], %v: HALF[1,150,128]) {\n"
     " %y = attention(%q, %k, %v) {scale=0.1} : HALF[1,80,128]\n return %y\n}"},
};

constexpr const char* kVolumesLast = "{0, 2, 3, 4, 1}";
constexpr const char* kLinesLast = "{0, 2, 1}";

const Template kLibraryConvolutions[] = {
    {"groups",
     "graph g(%x: HALF[N,64,9,7], %w: HALF[32,16,3,3], %b: HALF[32]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 2], padding=[1, 0], dilation=[1, 1], groups=4} : "
     "HALF[N,32,9,3]\n"
     " return %y\n}",
     {{"N", 3}},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"groups_of_four_unaligned",
     "graph g(%x: HALF[2,32,8,8], %w: HALF[64,4,3,3]) {\n"
     " %y = convolution(%x, %w) {stride=[1, 1], padding=[2, 2], dilation=[2, 2], groups=8} : HALF[2,64,8,8]\n"
     " return %y\n}",
     {},
     1,
     {kChannelsLast, kChannelsLast, kChannelsLast}},
    {"odd_channels",
     "graph g(%x: HALF[2,5,11,9], %w: HALF[13,5,3,2], %b: HALF[13]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 1], padding=[1, 1], dilation=[1, 1]} : HALF[2,13,11,10]\n"
     " return %y\n}",
     {},
     0,
     {kChannelsLast, kChannelsLast, "", kChannelsLast}},
    {"volumes",
     "graph g(%x: HALF[N,16,5,9,7], %w: HALF[24,16,3,3,3], %b: HALF[24]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1, 2, 1], padding=[1, 1, 0], dilation=[1, 1, 2]} : "
     "HALF[N,24,5,5,3]\n"
     " return %y\n}",
     {{"N", 2}},
     0,
     {kVolumesLast, kVolumesLast, "", kVolumesLast}},
    {"volumes_of_groups",
     "graph g(%x: HALF[1,32,4,6,6], %w: HALF[32,8,2,3,3]) {\n"
     " %y = convolution(%x, %w) {stride=[2, 1, 1], padding=[0, 1, 1], dilation=[1, 1, 1], groups=4} : "
     "HALF[1,32,2,6,6]\n"
     " return %y\n}",
     {},
     0,
     {kVolumesLast, kVolumesLast, kVolumesLast}},
    {"lines",
     "graph g(%x: HALF[2,16,S], %w: HALF[24,16,3], %b: HALF[24]) {\n"
     " %y = convolution(%x, %w, %b) {stride=[1], padding=[1], dilation=[1]} : HALF[2,24,S]\n"
     " return %y\n}",
     {{"S", 50}},
     0,
     {kLinesLast, kLinesLast, "", kLinesLast}},
};

}  // namespace

std::span<const Template> library_convolution_graphs() { return kLibraryConvolutions; }

void PrintTo(const Template& test, std::ostream* out) { *out << test.name; }

std::span<const Template> templates() { return kTemplates; }

}  // namespace ingot::core::cuda
