/* exmy: software floating-point formats of any shape, for C and C++.
 *
 * Every function that can fail returns an exmy_status, and exmy_message has the sentence about it. Handles are
 * made by exmy_X_new and freed by exmy_X_free, which take null, too; they do not change, and threads may share
 * them. Texts are UTF-8 and end with a zero byte.
 *
 * Codes stand in the smallest of uint8_t, uint16_t, uint32_t and uint64_t that holds them: void pointers to codes
 * point to an array of these. Bits above the width of a code do not count, but in exmy_pack, which refuses them. A
 * float is a code of f32, a double one of f64. Arrays that are written overlap no others unless their function says
 * so.
 */

#ifndef EXMY_H
#define EXMY_H

/* Made by cbindgen from the crate exmy-capi: changes belong there. */

#include <stddef.h>
#include <stdint.h>

// A product sums along the columns: of a left operand.
#define EXMY_AXIS_COLS 0

// A product sums along the rows: of a right operand.
#define EXMY_AXIS_ROWS 1

// The result is not the exact number.
#define EXMY_FLAG_INEXACT 1

// The number was below the smallest normal one, and the result is inexact.
#define EXMY_FLAG_UNDERFLOW 2

// The rounded number was above the largest finite one.
#define EXMY_FLAG_OVERFLOW 4

// An infinite result of finite operands was exact.
#define EXMY_FLAG_DIVIDE_BY_ZERO 8

// There is no such value, or an operand is a signaling NaN.
#define EXMY_FLAG_INVALID 16

// The result is the end of the range in place of something beyond it. Not one of IEEE 754's.
#define EXMY_FLAG_SATURATED 32

// What became of a call. `exmy_message` has the sentence about a failure.
enum exmy_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It did what was asked.
  EXMY_STATUS_OK = 0,
  // A text is no name of what was asked for, or no UTF-8.
  EXMY_STATUS_NAME = 1,
  // A pointer is null or not aligned, arrays overlap, or a number is out of range.
  EXMY_STATUS_ARGUMENT = 2,
  // Names that go together with nothing: formats that an operation does not take, shapes that do not fit.
  EXMY_STATUS_UNSUPPORTED = 3,
  // A fault of the library, which should be reported.
  EXMY_STATUS_INTERNAL = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum exmy_status exmy_status;
#else
typedef int32_t exmy_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A matrix of packed codes with the scales of its blocks.
typedef struct exmy_blocks exmy_blocks;

// A conversion from one format to another, prepared for arrays.
typedef struct exmy_converter exmy_converter;

// A number format.
typedef struct exmy_format exmy_format;

// An operation on formats, with everything settled.
typedef struct exmy_function exmy_function;

// How a product is summed, and what becomes of its results.
typedef struct exmy_product exmy_product;

// What rounds a matrix.
typedef struct exmy_quantizer exmy_quantizer;

// A matrix unit with the formats that enter and leave it.
typedef struct exmy_unit exmy_unit;

// A sequence of random words: Philox4x32-10 under a seed, of the stream of a name. Word `i` belongs to
// element `i`, whatever the threads, and `srN` takes its top N bits.
typedef struct exmy_random {
  // The seed.
  uint64_t seed;
  // The name of the stream; null is the empty one.
  const char *stream;
} exmy_random;

// A matrix of blocks as it is stored. The arrays belong to the handle and live as long as it does.
typedef struct exmy_blocks_stored {
  // Rows of the matrix.
  size_t rows;
  // Columns of the matrix.
  size_t cols;
  // Rows of a block.
  size_t block_rows;
  // Columns of a block.
  size_t block_cols;
  // Bits of an element's code.
  uint32_t element_bits;
  // Bytes of a scale, little-endian.
  uint32_t scale_bytes;
  // The codes as a stream: code `i * cols + j` of element (i, j), the first one in the low bits.
  const uint8_t *codes;
  // Bytes of the codes.
  size_t codes_size;
  // The scales, row-major over blocks.
  const uint8_t *scales;
  // Bytes of the scales.
  size_t scales_size;
  // The scale of the whole matrix, if it has one, else 1.
  float tensor_scale;
  // 1 if it has one, else 0.
  uint8_t has_tensor_scale;
} exmy_blocks_stored;

// The facts of a format. Codes are those of positive numbers.
typedef struct exmy_format_facts {
  // Bits of a code, 1 to 64.
  uint32_t bits;
  // Bytes of the integer in which a code stands in arrays: 1, 2, 4 or 8.
  uint32_t code_bytes;
  // Bits of the exponent field.
  uint32_t exponent_bits;
  // Bits of the trailing significand.
  uint32_t mantissa_bits;
  // What the exponent field has on top of the exponent.
  int32_t bias;
  // The exponent of the smallest normal number.
  int32_t emin;
  // The exponent of the largest number.
  int32_t emax;
  // The code of the largest number.
  uint64_t max_code;
  // The code of the smallest normal number; 0 if there is none.
  uint64_t min_normal_code;
  // The code of the smallest positive number.
  uint64_t min_positive_code;
  // The code of NaN results; 0 if there is no NaN.
  uint64_t nan_code;
  // The code of positive infinity; 0 if there is none.
  uint64_t infinity_code;
  // 1 if there are negative numbers, else 0.
  uint8_t is_signed;
  // 1 if there is a zero, else 0.
  uint8_t has_zero;
  // 1 if there is a negative zero, else 0.
  uint8_t has_negative_zero;
  // 1 if there are subnormal numbers, else 0.
  uint8_t has_subnormals;
  // 1 if there is a NaN, else 0.
  uint8_t has_nan;
  // 1 if there are infinities, else 0.
  uint8_t has_infinity;
} exmy_format_facts;

// What a function takes and returns.
typedef struct exmy_function_facts {
  // How many operands there are, 1 to 3.
  uint32_t operands;
  // Bits of each operand; 0 behind the last.
  uint32_t operand_bits[3];
  // Bits of the result: of a code, an integer, or 1 of a comparison.
  uint32_t result_bits;
  // How many of the top bits of a random word are used, 0 to 32.
  uint32_t random_bits;
} exmy_function_facts;

// An operand of a product. It is `blocks`, or where that is null `rows` x `cols` codes of `format`: element
// (i, j) is code `i * row_stride + j * col_stride`. Two strides of 0 mean rows one after the other.
typedef struct exmy_matrix {
  // A matrix of blocks. All below but `transposed` does not count then.
  const struct exmy_blocks *blocks;
  // The format of the codes.
  const struct exmy_format *format;
  // The codes: of `f32` an array of `float`.
  const void *codes;
  // Rows of what is stored.
  size_t rows;
  // Columns of what is stored.
  size_t cols;
  // Codes from an element to the one below.
  size_t row_stride;
  // Codes from an element to the one on its right.
  size_t col_stride;
  // If not 0, the operand has the columns as rows and the rows as columns; nothing is moved.
  uint32_t transposed;
} exmy_matrix;

// What enters and leaves a unit.
typedef struct exmy_unit_facts {
  // Bits of the elements of A and of B.
  uint32_t element_bits[2];
  // Bits of the block scales of A and of B; 0 if there are none.
  uint32_t scale_bits[2];
  // Elements that share a scale; 0 if there are none.
  uint32_t block[2];
  // Bits of addend and result.
  uint32_t result_bits;
  // Products of a step, after which the sum is rounded.
  uint32_t products;
} exmy_unit_facts;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The quantizer of a text: a block format or a format, with a mode and a policy: `mxfp8-e4m3`, `nvfp4`,
// `mxfp4@rtz`, `e2m1/16:ue4m3+tensor`, `rht16>nvfp4@sr8`, `e5m2@sat-finite`. In `*out`; null if it fails.
exmy_status exmy_quantizer_new(const char *name, struct exmy_quantizer **out);

// Frees a quantizer.
void exmy_quantizer_free(struct exmy_quantizer *quantizer);

// The codes and scales of a matrix of `rows` x `cols` numbers, row `i` of which begins at `i * row_stride`
// (0: `cols`). Blocks lie along `axis`, EXMY_AXIS_*. Stochastic modes need `random`, of which element (i,
// j) takes word `i * cols + j`; else it may be null. In `*out`; null if it fails.
exmy_status exmy_quantize(const struct exmy_quantizer *quantizer,
                          const float *numbers,
                          size_t rows,
                          size_t cols,
                          size_t row_stride,
                          int32_t axis,
                          const struct exmy_random *random,
                          struct exmy_blocks **out);

// The values that a matrix has in low precision, without codes: as `exmy_quantize` and `exmy_dequantize`,
// and after a rotation still rotated. `results` has `rows` x `cols` places, row by row.
exmy_status exmy_quantize_values(const struct exmy_quantizer *quantizer,
                                 const float *numbers,
                                 size_t rows,
                                 size_t cols,
                                 size_t row_stride,
                                 int32_t axis,
                                 const struct exmy_random *random,
                                 float *results);

// A matrix of blocks from its parts, which are copied. `format` is a block format (`mxfp4`),
// `tensor_scale` is null unless the format has one. In `*out`; null if it fails.
exmy_status exmy_blocks_from_parts(const char *format,
                                   int32_t axis,
                                   size_t rows,
                                   size_t cols,
                                   const uint8_t *codes,
                                   size_t codes_size,
                                   const uint8_t *scales,
                                   size_t scales_size,
                                   const float *tensor_scale,
                                   struct exmy_blocks **out);

// Frees a matrix of blocks.
void exmy_blocks_free(struct exmy_blocks *blocks);

// The block format, as `exmy_format_name` writes a format's.
exmy_status exmy_blocks_name(const struct exmy_blocks *blocks, char *text, size_t size, size_t *length);

// The matrix as it is stored.
exmy_status exmy_blocks_parts(const struct exmy_blocks *blocks, struct exmy_blocks_stored *parts);

// The values of a matrix of blocks, row by row: rows x cols of them.
exmy_status exmy_dequantize(const struct exmy_blocks *blocks, float *results);

// The conversion of a format's name to another's, with settings as those of `exmy_function_new`, which may
// be null. In `*out`; null if it fails.
exmy_status exmy_converter_new(const char *from,
                               const char *to,
                               const char *settings,
                               struct exmy_converter **out);

// Frees a converter.
void exmy_converter_free(struct exmy_converter *converter);

// Converts `count` codes of the one format to codes of the other. `random` has a word for each under
// stochastic modes, else it may be null. So may `flags`, which is filled with the bits EXMY_FLAG_*; finding
// them takes longer.
exmy_status exmy_convert(const struct exmy_converter *converter,
                         size_t count,
                         const void *codes,
                         const uint32_t *random,
                         void *results,
                         uint8_t *flags);

// Rounds `count` numbers of C to the other format and back: what the format keeps of them. The converter
// comes from `f32`, and numbers and results are `float`; or from `f64`, and they are `double`. They may be
// one array.
exmy_status exmy_fake_quantize(const struct exmy_converter *converter,
                               size_t count,
                               const void *numbers,
                               const uint32_t *random,
                               void *results);

// The format of a name: `e4m3`, `float8_e5m2`, `bf16`, `e6m9`, `binary8p3se`. In `*out`; null if it fails.
exmy_status exmy_format_new(const char *name, struct exmy_format **out);

// Frees a format.
void exmy_format_free(struct exmy_format *format);

// The canonical name, in `text` of `size` bytes, and in `*length`, which may be null, how long it is without
// the zero behind it. With a null `text` and a size of 0 the length alone.
exmy_status exmy_format_name(const struct exmy_format *format, char *text, size_t size, size_t *length);

// The facts of a format.
exmy_status exmy_format_describe(const struct exmy_format *format, struct exmy_format_facts *facts);

// The number of a code, rounded to nearest even where the format is wider than a `double`. Bits beyond the
// format's width do not count.
exmy_status exmy_format_value(const struct exmy_format *format, uint64_t code, double *value);

// The function of a name as Berkeley TestFloat writes it, on any formats: `e4m3_mulAdd`, `f16_add_to_f32`,
// `f32_to_e4m3`, `e4m3,e5m2,f32_mulAdd_to_f32`, `bf16_exp`, `f16_le_quiet`, `f32_to_i32`. Settings, which
// may be null, say what the name leaves open: `round=rtz,overflow=sat-finite`. In `*out`; null if it
// fails.
//
// round: rne rna rnz rtz rup rdn raz odd, srN srNb srNc. overflow: sat-none sat-finite sat-propagate
// to-nan to-inf onnx. profile: ieee p3109 ocp-sat ocp-nonsat cuda-satfinite torch x86 riscv and others.
// tininess: after before. flush: flush-none flush-input flush-candidates flush-output. subnormals (of
// operands): exact zero positive-zero. exact (whether rounding to an integer raises inexact): yes no.
// int-invalid: x86 riscv arm.
exmy_status exmy_function_new(const char *name, const char *settings, struct exmy_function **out);

// Frees a function.
void exmy_function_free(struct exmy_function *function);

// What a function takes and returns.
exmy_status exmy_function_describe(const struct exmy_function *function, struct exmy_function_facts *facts);

// One result: of the codes `a`, `b` and `c`, of which those beyond the function's operands do not count, and
// the random word of stochastic modes, whose top bits are used. Integers are two's complement; a comparison
// gives 0 or 1. `flags`, which may be null, has the bits EXMY_FLAG_*.
exmy_status exmy_evaluate(const struct exmy_function *function,
                          uint64_t a,
                          uint64_t b,
                          uint64_t c,
                          uint32_t random,
                          uint64_t *result,
                          uint8_t *flags);

// `count` results. Arrays of operands that the function does not have may be null; so may `random` unless
// the mode is stochastic, and `flags`.
exmy_status exmy_evaluate_array(const struct exmy_function *function,
                                size_t count,
                                const uint64_t *a,
                                const uint64_t *b,
                                const uint64_t *c,
                                const uint32_t *random,
                                uint64_t *results,
                                uint8_t *flags);

// The bytes that `count` codes of `width` bits (1 to 16) take. Layouts: `stream` (no bit between codes, the
// first in the low bits), `byte`, and of 6 bits `fp6-padded4`, `fp6-padded32`, `tma16`.
exmy_status exmy_packed_size(const char *layout, uint32_t width, size_t count, size_t *size);

// Packs `count` codes of `width` bits into as many bytes as `exmy_packed_size` says. A code with more bits
// is refused, and all bytes are 0 then.
exmy_status exmy_pack(const char *layout, uint32_t width, size_t count, const void *codes, uint8_t *bytes);

// The way back: `count` codes out of as many bytes as `exmy_packed_size` says.
exmy_status exmy_unpack(const char *layout, uint32_t width, size_t count, const uint8_t *bytes, void *codes);

// The product of an accumulation's name: `exact`, `fma`, `fma:bf16`, `blocked256`,
// `promote128(fma:e8m13@rtz)`, `fast`, a matrix unit as `hopper` or `unit.toml`. Settings, which may be
// null: output (a format, `f32` if it is not set), round and overflow of the results, non-finite (what
// becomes of a product with infinities or NaN): keep error. In `*out`; null if it fails.
exmy_status exmy_product_new(const char *accumulation, const char *settings, struct exmy_product **out);

// Frees a product.
void exmy_product_free(struct exmy_product *product);

// The facts of the output's format, whose codes `exmy_gemm_codes` gives.
exmy_status exmy_product_describe(const struct exmy_product *product, struct exmy_format_facts *facts);

// C = alpha A B + beta C, of M x N numbers, row `i` of which begins at `i * c_row_stride` (0: N). C is not
// read if beta is 0. Stochastic roundings need `random`; else it may be null. So may `non_finite`, which
// is how many results were infinite or NaN. Nothing is written if it fails.
exmy_status exmy_gemm(const struct exmy_product *product,
                      const struct exmy_matrix *a,
                      const struct exmy_matrix *b,
                      float alpha,
                      float beta,
                      const struct exmy_random *random,
                      float *c,
                      size_t c_row_stride,
                      uint64_t *non_finite);

// alpha A B as M x N codes of the output's format, row by row.
exmy_status exmy_gemm_codes(const struct exmy_product *product,
                            const struct exmy_matrix *a,
                            const struct exmy_matrix *b,
                            float alpha,
                            const struct exmy_random *random,
                            void *codes);

// Writes the words of `count` elements from the element `first` on.
exmy_status exmy_random_words(const struct exmy_random *random,
                              uint64_t first,
                              size_t count,
                              uint32_t *words);

// The sentence about the last call of this thread that failed; empty if none has. It is valid until the next
// one fails or the thread ends.
const char *exmy_message(void);

// The version of exmy, as "0.1.0". It is valid for ever.
const char *exmy_version(void);

// The unit of a text, `MODEL[,KEY=VALUE...]:A[,B][+RESULT]`: `hopper:e4m3`, `ada:e4m3,e5m2+f16`,
// `blackwell:nvfp4`, `custom,l=8,f=24:e5m3`; or of a file that describes one and whose name ends in `.toml`
// (docs/units.md), with formats behind a colon or in it: `unit.toml:e4m3`, `unit.toml`. In `*out`; null if
// it fails.
exmy_status exmy_unit_new(const char *name, struct exmy_unit **out);

// Frees a unit.
void exmy_unit_free(struct exmy_unit *unit);

// The unit's text, as `exmy_format_name` writes a format's.
exmy_status exmy_unit_name(const struct exmy_unit *unit, char *text, size_t size, size_t *length);

// What enters and leaves a unit.
exmy_status exmy_unit_describe(const struct exmy_unit *unit, struct exmy_unit_facts *facts);

// Random words of a dot product of `k` elements, for `exmy_unit_dot_random` and its like: one of 32 bits for
// each rounding, mostly for each step, of which `srN` uses the top N bits; 0 unless the unit rounds by a
// stochastic mode.
exmy_status exmy_unit_words(const struct exmy_unit *unit, size_t k, size_t *words);

// One dot product of `k` elements on top of the addend `c`, a code of the result's format. `a_scales` and
// `b_scales` have a code for each block and may be null where the unit has none.
exmy_status exmy_unit_dot(const struct exmy_unit *unit,
                          size_t k,
                          const void *a,
                          const void *b,
                          const void *a_scales,
                          const void *b_scales,
                          uint64_t c,
                          uint64_t *result);

// The same by `exmy_unit_words` random words, the first for the first step. They may be null where none are
// needed.
exmy_status exmy_unit_dot_random(const struct exmy_unit *unit,
                                 size_t k,
                                 const void *a,
                                 const void *b,
                                 const void *a_scales,
                                 const void *b_scales,
                                 uint64_t c,
                                 const uint32_t *words,
                                 uint64_t *result);

// D = A B + C of M x N dot products. A has M rows of `k` elements one after the other, B has N *columns*
// of as many; scales likewise. C and D are codes of the result's format, row by row; they may be one
// array. A null C is zero.
exmy_status exmy_unit_multiply(const struct exmy_unit *unit,
                               size_t m,
                               size_t n,
                               size_t k,
                               const void *a,
                               const void *b,
                               const void *a_scales,
                               const void *b_scales,
                               const void *c,
                               void *d);

// The same by random words: M x N times `exmy_unit_words` of them, those of a result one after another, row
// by row. They may be null where none are needed.
exmy_status exmy_unit_multiply_random(const struct exmy_unit *unit,
                                      size_t m,
                                      size_t n,
                                      size_t k,
                                      const void *a,
                                      const void *b,
                                      const void *a_scales,
                                      const void *b_scales,
                                      const void *c,
                                      const uint32_t *words,
                                      void *d);

// One dot product step by step, as text: what was aligned to what, which bits were cut, what was rounded.
// Text and length as in `exmy_format_name`.
exmy_status exmy_unit_explain(const struct exmy_unit *unit,
                              size_t k,
                              const void *a,
                              const void *b,
                              const void *a_scales,
                              const void *b_scales,
                              uint64_t c,
                              char *text,
                              size_t size,
                              size_t *length);

// The same by random words, as in `exmy_unit_dot_random`.
exmy_status exmy_unit_explain_random(const struct exmy_unit *unit,
                                     size_t k,
                                     const void *a,
                                     const void *b,
                                     const void *a_scales,
                                     const void *b_scales,
                                     uint64_t c,
                                     const uint32_t *words,
                                     char *text,
                                     size_t size,
                                     size_t *length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EXMY_H */
