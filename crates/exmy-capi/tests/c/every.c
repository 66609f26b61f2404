/* Calls every function of exmy.h, as C11 and as C++17. Results are worked out by hand: E4M3 has the bias 7 and three
 * bits of mantissa, so 1 is 0x38, a unit in the last place of it 1/8, and 448 is 0x7E. */
#include "exmy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void check(int holds, int line, const char *what) {
    if (!holds) {
        failures++;
        printf("line %d: %s; last message: %s\n", line, what, exmy_message());
    }
}
#define CHECK(holds) check((holds), __LINE__, #holds)
#define OK(call) check((call) == EXMY_STATUS_OK, __LINE__, #call)
#define FAILS(call, status, words) \
    do { \
        check((call) == (status), __LINE__, #call); \
        check(strstr(exmy_message(), (words)) != NULL, __LINE__, words); \
    } while (0)

static void formats(void) {
    exmy_format *e4m3 = NULL, *none = NULL;
    exmy_format_facts facts;
    char name[8];
    size_t length = 0;
    double value = 0;

    OK(exmy_format_new("float8_e4m3fn", &e4m3));
    OK(exmy_format_name(e4m3, name, sizeof name, &length));
    CHECK(strcmp(name, "e4m3") == 0 && length == 4);
    OK(exmy_format_name(e4m3, NULL, 0, &length));
    FAILS(exmy_format_name(e4m3, name, 4, NULL), EXMY_STATUS_ARGUMENT, "5 bytes");
    OK(exmy_format_describe(e4m3, &facts));
    CHECK(facts.bits == 8 && facts.code_bytes == 1 && facts.exponent_bits == 4 && facts.mantissa_bits == 3);
    CHECK(facts.bias == 7 && facts.emin == -6 && facts.emax == 8);
    CHECK(facts.max_code == 0x7E && facts.min_normal_code == 0x08 && facts.min_positive_code == 0x01);
    CHECK(facts.nan_code == 0x7F && facts.has_nan == 1 && facts.has_infinity == 0 && facts.infinity_code == 0);
    CHECK(facts.is_signed == 1 && facts.has_zero == 1 && facts.has_negative_zero == 1 && facts.has_subnormals == 1);
    OK(exmy_format_value(e4m3, 0xFE, &value));
    CHECK(value == -448.0);
    exmy_format_free(e4m3);
    exmy_format_free(NULL);

    none = (exmy_format *)&value;
    FAILS(exmy_format_new("e4m3fm", &none), EXMY_STATUS_NAME, "did you mean");
    CHECK(none == NULL);
    FAILS(exmy_format_new(NULL, &none), EXMY_STATUS_ARGUMENT, "name is null");
    FAILS(exmy_format_new("e4m3", NULL), EXMY_STATUS_ARGUMENT, "out is null");
    FAILS(exmy_format_new("\xFF", &none), EXMY_STATUS_NAME, "UTF-8");
    FAILS(exmy_format_describe(NULL, &facts), EXMY_STATUS_ARGUMENT, "format is null");
}

/* One result, and its flags in the bits above. */
static uint64_t of(const char *name, const char *settings, uint64_t a, uint64_t b, uint64_t c, uint32_t random,
                   unsigned *raised) {
    exmy_function *function = NULL;
    uint64_t result = 0;
    uint8_t flags = 0xFF;
    check(exmy_function_new(name, settings, &function) == EXMY_STATUS_OK, __LINE__, name);
    check(exmy_evaluate(function, a, b, c, random, &result, &flags) == EXMY_STATUS_OK, __LINE__, name);
    exmy_function_free(function);
    *raised = flags;
    return result;
}

static void functions(void) {
    /* 1 + 1/16 is halfway between 1 (0x38) and 1 + 1/8 (0x39). */
    static const struct {
        const char *mode;
        uint32_t random;
        uint64_t result;
    } ties[] = {
        {"round=rne", 0, 0x38},         {"round=rna", 0, 0x39},  {"round=rnz", 0, 0x38},
        {"round=rtz", 0, 0x38},         {"round=rup", 0, 0x39},  {"round=rdn", 0, 0x38},
        {"round=raz", 0, 0x39},         {"round=odd", 0, 0x39},  {"round=sr1", 0x7FFFFFFF, 0x38},
        {"round=sr1", 0x80000000, 0x39}, {"round=sr1b", 0, 0x38}, {"round=sr1c", 0x80000000, 0x39},
    };
    unsigned flags;
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++) {
        uint64_t result = of("e4m3_add", ties[i].mode, 0x38, 0x18, 0, ties[i].random, &flags);
        check(result == ties[i].result && flags == EXMY_FLAG_INEXACT, __LINE__, ties[i].mode);
    }
    CHECK(of("e4m3_mul", NULL, 0x3C, 0x3C, 0, 0, &flags) == 0x41 && flags == 0); /* 1.5 * 1.5 = 2.25 */
    CHECK(of("e4m3_mul", "overflow=sat-finite", 0x7E, 0x40, 0, 0, &flags) == 0x7E);
    CHECK(flags == (EXMY_FLAG_OVERFLOW | EXMY_FLAG_INEXACT | EXMY_FLAG_SATURATED));
    CHECK(of("e4m3_mul", "", 0x7E, 0x40, 0, 0, &flags) == 0x7F); /* NaN in place of infinity */
    CHECK(flags == (EXMY_FLAG_OVERFLOW | EXMY_FLAG_INEXACT | EXMY_FLAG_INVALID));
    CHECK(of("e5m2_div", NULL, 0x3C, 0x00, 0, 0, &flags) == 0x7C && flags == EXMY_FLAG_DIVIDE_BY_ZERO);
    CHECK(of("f16_sqrt", NULL, 0xBC00, 0, 0, 0, &flags) == 0x7E00 && flags == EXMY_FLAG_INVALID);
    CHECK(of("e4m3_mulAdd_to_f16", NULL, 0x38, 0x40, 0x38, 0, &flags) == 0x4200 && flags == 0); /* 1 * 2 + 1 */
    CHECK(of("e4m3_exp", NULL, 0x38, 0, 0, 0, &flags) == 0x43 && flags == EXMY_FLAG_INEXACT); /* 2.75 */
    CHECK(of("e4m3_lt_quiet", NULL, 0x38, 0x40, 0, 0, &flags) == 1 && flags == 0);
    CHECK(of("f32_to_i32", "round=rtz exact=yes", 0xC0200000, 0, 0, 0, &flags) == 0xFFFFFFFE); /* -2.5 */
    CHECK(flags == EXMY_FLAG_INEXACT);
    CHECK(of("ui8_to_e4m3", "round=rup", 17, 0, 0, 0, &flags) == 0x59); /* 18 = 1.125 * 2^4 */

    /* Bits above a width do not count. */
    CHECK(of("e4m3_mul", NULL, 0x13C, 0xFF3C, 0, 0, &flags) == 0x41);
    CHECK(of("ui8_to_e4m3", "round=rup", 0x111, 0, 0, 0, &flags) == 0x59);

    /* 2^-6 is the smallest normal number (0x08), 2^-9 the smallest (0x01). */
    CHECK(of("e4m3_mul", NULL, 0x08, 0x30, 0, 0, &flags) == 0x04 && flags == 0);
    CHECK(of("e4m3_mul", "flush=flush-output", 0x08, 0x30, 0, 0, &flags) == 0x00);
    CHECK(flags == (EXMY_FLAG_UNDERFLOW | EXMY_FLAG_INEXACT));
    CHECK(of("e4m3_add", "subnormals=exact", 0x01, 0x01, 0, 0, &flags) == 0x02);
    CHECK(of("e4m3_add", "subnormals=zero", 0x01, 0x01, 0, 0, &flags) == 0x00 && flags == 0);
    CHECK(of("e4m3_le_quiet", "subnormals=zero", 0x01, 0x00, 0, 0, &flags) == 1);
    CHECK(of("e4m3_to_i8", "round=rup", 0x01, 0, 0, 0, &flags) == 1);
    CHECK(of("e4m3_to_i8", "round=rup,subnormals=zero", 0x01, 0, 0, 0, &flags) == 0);

    exmy_function *function = NULL;
    exmy_function_facts facts;
    OK(exmy_function_new("e4m3,e5m2,f32_mulAdd_to_f32", "round=sr5", &function));
    OK(exmy_function_describe(function, &facts));
    CHECK(facts.operands == 3 && facts.operand_bits[0] == 8 && facts.operand_bits[2] == 32);
    CHECK(facts.result_bits == 32 && facts.random_bits == 5);
    exmy_function_free(function);

    uint64_t a[2] = {0x38, 0x7E}, b[2] = {0x18, 0x40}, results[2] = {0, 0};
    uint32_t random[2] = {0x80000000, 0};
    uint8_t raised[2] = {0, 0};
    OK(exmy_function_new("e4m3_add", "round=sr1,overflow=sat-finite", &function));
    OK(exmy_evaluate_array(function, 2, a, b, NULL, random, results, raised));
    CHECK(results[0] == 0x39 && results[1] == 0x7E && raised[0] == EXMY_FLAG_INEXACT);
    OK(exmy_evaluate_array(function, 0, NULL, NULL, NULL, NULL, NULL, NULL));
    FAILS(exmy_evaluate_array(function, 2, a, b, NULL, NULL, results, NULL), EXMY_STATUS_ARGUMENT, "random is null");
    FAILS(exmy_evaluate_array(function, 2, a, b, NULL, random, a, NULL), EXMY_STATUS_ARGUMENT, "overlap");
    FAILS(exmy_evaluate(function, 0, 0, 0, 0, NULL, NULL), EXMY_STATUS_ARGUMENT, "result is null");
    exmy_function_free(function);
    FAILS(exmy_function_new("e4m3_ad", NULL, &function), EXMY_STATUS_NAME, "add");
    FAILS(exmy_function_new("e4m3_add", "mode=rne", &function), EXMY_STATUS_NAME, "round=");
    FAILS(exmy_function_new("e4m3_add", "round=rn", &function), EXMY_STATUS_NAME, "rne");
    FAILS(exmy_function_new("e4m3_add", "round=rtz,round=rup", &function), EXMY_STATUS_NAME, "round is set a second");
    FAILS(exmy_function_new("f64_to_i128", NULL, &function), EXMY_STATUS_UNSUPPORTED, "64 bits");
    CHECK(function == NULL);
}

static void conversions(void) {
    exmy_converter *converter = NULL;
    float x[4] = {1.0F, 464.0F, 465.0F, 0.0F}, y[4];
    uint8_t codes[4], flags[4];
    x[3] = (float)NAN;

    /* 464 is a tie of 448 and 480 and goes to the even 448; 465 saturates. */
    OK(exmy_converter_new("f32", "e4m3", "overflow=sat-finite", &converter));
    OK(exmy_convert(converter, 4, x, NULL, codes, NULL));
    CHECK(codes[0] == 0x38 && codes[1] == 0x7E && codes[2] == 0x7E && codes[3] == 0x7F);
    memset(codes, 0, sizeof codes);
    OK(exmy_convert(converter, 4, x, NULL, codes, flags));
    CHECK(codes[0] == 0x38 && codes[1] == 0x7E && codes[2] == 0x7E && codes[3] == 0x7F);
    CHECK(flags[0] == 0 && flags[1] == EXMY_FLAG_INEXACT && flags[3] == 0);
    CHECK(flags[2] == (EXMY_FLAG_INEXACT | EXMY_FLAG_OVERFLOW | EXMY_FLAG_SATURATED));
    OK(exmy_fake_quantize(converter, 3, x, NULL, y));
    CHECK(y[0] == 1.0F && y[1] == 448.0F && y[2] == 448.0F);
    OK(exmy_fake_quantize(converter, 3, x, NULL, x));
    CHECK(x[1] == 448.0F && x[2] == 448.0F);
    FAILS(exmy_fake_quantize(converter, 3, x, NULL, x + 1), EXMY_STATUS_ARGUMENT, "overlap");
    FAILS(exmy_convert(converter, 4, (const char *)x + 1, NULL, codes, NULL), EXMY_STATUS_ARGUMENT, "aligned");
    FAILS(exmy_convert(converter, 4, x, NULL, NULL, NULL), EXMY_STATUS_ARGUMENT, "results is null");
    FAILS(exmy_convert(NULL, 0, NULL, NULL, NULL, NULL), EXMY_STATUS_ARGUMENT, "converter is null");
    exmy_converter_free(converter);

    /* 2.25 is a quarter of the way from 2 (4) to 3 (5): up for one of the four numbers of two bits. */
    uint32_t random[4] = {0, 1U << 30, 2U << 30, 3U << 30};
    double quarter[4] = {2.25, 2.25, 2.25, 2.25};
    OK(exmy_converter_new("f64", "e2m1", "round=sr2", &converter));
    OK(exmy_convert(converter, 4, quarter, random, codes, NULL));
    CHECK(codes[0] == 4 && codes[1] == 4 && codes[2] == 4 && codes[3] == 5);
    OK(exmy_convert(converter, 4, quarter, random, codes, flags));
    CHECK(codes[2] == 4 && codes[3] == 5 && flags[3] == EXMY_FLAG_INEXACT);
    OK(exmy_fake_quantize(converter, 4, quarter, random, quarter));
    CHECK(quarter[2] == 2.0 && quarter[3] == 3.0);
    FAILS(exmy_convert(converter, 4, quarter, NULL, codes, NULL), EXMY_STATUS_ARGUMENT, "random is null");
    exmy_converter_free(converter);

    uint16_t halves[2] = {0x3C00, 0xC500}; /* 1, -5 */
    uint64_t wide[2];
    OK(exmy_converter_new("f16", "f64", NULL, &converter));
    OK(exmy_convert(converter, 2, halves, NULL, wide, NULL));
    CHECK(wide[0] == 0x3FF0000000000000U && wide[1] == 0xC014000000000000U);
    FAILS(exmy_fake_quantize(converter, 2, halves, NULL, halves), EXMY_STATUS_UNSUPPORTED, "f32 or f64");
    exmy_converter_free(converter);
    FAILS(exmy_converter_new("f32", "e4m3", "flush=yes", &converter), EXMY_STATUS_NAME, "flush-output");
}

static void packing(void) {
    uint8_t codes[4] = {0x0, 0x2, 0xD, 0x7}, bytes[2] = {0, 0}, back[4] = {9, 9, 9, 9};
    uint16_t nine[2] = {0x02A, 0x1FF};
    uint8_t padded[4];
    size_t size = 0;
    OK(exmy_packed_size("stream", 6, 33, &size));
    CHECK(size == 25); /* 198 bits */
    OK(exmy_pack("stream", 4, 4, codes, bytes));
    CHECK(bytes[0] == 0x20 && bytes[1] == 0x7D);
    OK(exmy_unpack("stream", 4, 4, bytes, back));
    CHECK(memcmp(codes, back, sizeof codes) == 0);
    OK(exmy_pack("byte", 9, 2, nine, padded));
    CHECK(padded[0] == 0x2A && padded[1] == 0x00 && padded[2] == 0xFF && padded[3] == 0x01);
    FAILS(exmy_pack("stream", 3, 4, codes, bytes), EXMY_STATUS_ARGUMENT, "");
    FAILS(exmy_packed_size("fp6-padded4", 4, 4, &size), EXMY_STATUS_UNSUPPORTED, "6");
    FAILS(exmy_packed_size("streams", 4, 4, &size), EXMY_STATUS_NAME, "stream");
    FAILS(exmy_packed_size("stream", 17, 4, &size), EXMY_STATUS_UNSUPPORTED, "16");
}

static void blocks(void) {
    /* The largest is 3 = 1.5 * 2^1 and E2M1's is 1.5 * 2^2, so the scale is 2^-1 (126) and the codes are those of
     * 0.2, 1, -6 and 2.5, which is a tie of 2 and 3. */
    float x[4] = {0.1F, 0.5F, -3.0F, 1.25F}, y[4], rows[2][3] = {{1, 2, 0}, {3, 4, 0}};
    exmy_quantizer *quantizer = NULL;
    exmy_blocks *made = NULL, *again = NULL;
    exmy_blocks_stored stored;
    exmy_random random = {7, "doc"};
    char name[16];
    OK(exmy_quantizer_new("mxfp4", &quantizer));
    OK(exmy_quantize(quantizer, x, 1, 4, 0, EXMY_AXIS_COLS, NULL, &made));
    OK(exmy_blocks_parts(made, &stored));
    CHECK(stored.rows == 1 && stored.cols == 4 && stored.block_rows == 1 && stored.block_cols == 32);
    CHECK(stored.element_bits == 4 && stored.scale_bytes == 1 && stored.codes_size == 2 && stored.scales_size == 1);
    CHECK(stored.codes[0] == 0x20 && stored.codes[1] == 0x4F && stored.scales[0] == 126);
    CHECK(stored.has_tensor_scale == 0 && stored.tensor_scale == 1.0F);
    OK(exmy_blocks_name(made, name, sizeof name, NULL));
    CHECK(strcmp(name, "mxfp4") == 0);
    OK(exmy_dequantize(made, y));
    CHECK(y[0] == 0.0F && y[1] == 0.5F && y[2] == -3.0F && y[3] == 1.0F);
    OK(exmy_blocks_from_parts("mxfp4", EXMY_AXIS_COLS, 1, 4, stored.codes, 2, stored.scales, 1, NULL, &again));
    OK(exmy_dequantize(again, y));
    CHECK(y[2] == -3.0F);
    exmy_blocks_free(again);
    FAILS(exmy_blocks_from_parts("mxfp4", EXMY_AXIS_COLS, 1, 4, stored.codes, 1, stored.scales, 1, NULL, &again),
          EXMY_STATUS_UNSUPPORTED, "2 bytes, found 1");
    FAILS(exmy_dequantize(made, NULL), EXMY_STATUS_ARGUMENT, "results is null");
    exmy_blocks_free(made);
    memset(y, 0, sizeof y);
    OK(exmy_quantize_values(quantizer, x, 1, 4, 0, EXMY_AXIS_COLS, NULL, y));
    CHECK(y[0] == 0.0F && y[1] == 0.5F && y[2] == -3.0F && y[3] == 1.0F);
    OK(exmy_quantize_values(quantizer, rows[0], 2, 2, 3, EXMY_AXIS_ROWS, &random, y));
    CHECK(y[0] == 1.0F && y[1] == 2.0F && y[2] == 3.0F && y[3] == 4.0F);
    FAILS(exmy_quantize(quantizer, x, 1, 4, 0, 2, NULL, &made), EXMY_STATUS_ARGUMENT, "axis is 2");
    exmy_quantizer_free(quantizer);

    OK(exmy_quantizer_new("mxfp4@sr8", &quantizer));
    FAILS(exmy_quantize(quantizer, x, 1, 4, 0, EXMY_AXIS_COLS, NULL, &made), EXMY_STATUS_ARGUMENT, "null, and mxfp4@sr8");
    FAILS(exmy_quantize_values(quantizer, x, 1, 4, 0, EXMY_AXIS_COLS, NULL, y), EXMY_STATUS_ARGUMENT, "random");
    OK(exmy_quantize(quantizer, x, 1, 4, 0, EXMY_AXIS_COLS, &random, &made));
    OK(exmy_dequantize(made, y));
    CHECK(y[1] == 0.5F && y[2] == -3.0F && (y[3] == 1.0F || y[3] == 1.5F));
    exmy_blocks_free(made);
    exmy_quantizer_free(quantizer);

    /* The largest magnitude 2688 is 6 * 448: the tensor's scale is 1 and the block's 448. */
    float tensor_scale = 1.0F, peak[1] = {2688.0F};
    uint8_t code = 0x7, scale = 0x7E;
    OK(exmy_quantizer_new("nvfp4", &quantizer));
    OK(exmy_quantize(quantizer, peak, 1, 1, 0, EXMY_AXIS_COLS, NULL, &made));
    OK(exmy_blocks_parts(made, &stored));
    CHECK(stored.has_tensor_scale == 1 && stored.tensor_scale == 1.0F && stored.scales[0] == 0x7E);
    exmy_blocks_free(made);
    exmy_quantizer_free(quantizer);
    OK(exmy_blocks_from_parts("nvfp4", EXMY_AXIS_COLS, 1, 1, &code, 1, &scale, 1, &tensor_scale, &made));
    OK(exmy_dequantize(made, y));
    CHECK(y[0] == 2688.0F);
    exmy_blocks_free(made);
    FAILS(exmy_quantizer_new("mxfp5", &quantizer), EXMY_STATUS_NAME, "mxfp4");
}

static void randoms(void) {
    /* Philox4x32-10 under the key 7, computed by another program. */
    uint32_t words[3];
    exmy_random random = {7, "doc"};
    OK(exmy_random_words(&random, 3, 3, words));
    CHECK(words[0] == 0x363A5E19U && words[1] == 0x8648EC8EU && words[2] == 0xC70FAE3FU);
    FAILS(exmy_random_words(NULL, 0, 3, words), EXMY_STATUS_ARGUMENT, "random is null");
}

static void units(void) {
    /* 1 and 2^-7: the sum of the squares is 1 + 2^-14, of which Hopper keeps 13 fraction bits. */
    uint8_t a[2] = {0x38, 0x04};
    uint64_t result = 0;
    exmy_unit *unit = NULL;
    exmy_unit_facts facts;
    char text[2048];
    size_t length = 0;
    OK(exmy_unit_new("hopper:e4m3", &unit));
    OK(exmy_unit_dot(unit, 2, a, a, NULL, NULL, 0, &result));
    CHECK(result == 0x3F800000);
    OK(exmy_unit_describe(unit, &facts));
    CHECK(facts.element_bits[0] == 8 && facts.scale_bits[1] == 0 && facts.block[0] == 0);
    CHECK(facts.result_bits == 32 && facts.products == 32);
    OK(exmy_unit_name(unit, text, sizeof text, NULL));
    CHECK(strcmp(text, "hopper:e4m3") == 0);
    OK(exmy_unit_explain(unit, 2, a, a, NULL, NULL, 0, text, sizeof text, &length));
    CHECK(strstr(text, "all bits cut") != NULL && length == strlen(text));

    /* Rows (1, 2) and (0.5, 0), columns (1, 1) and (2, 0), on top of 10 and its like. */
    uint8_t left[4] = {0x38, 0x40, 0x30, 0x00}, right[4] = {0x38, 0x38, 0x40, 0x00};
    float c[4] = {10.0F, 20.0F, 30.0F, 40.0F};
    OK(exmy_unit_multiply(unit, 2, 2, 2, left, right, NULL, NULL, c, c));
    CHECK(c[0] == 13.0F && c[1] == 22.0F && c[2] == 30.5F && c[3] == 41.0F);
    OK(exmy_unit_multiply(unit, 2, 2, 2, left, right, NULL, NULL, NULL, c));
    CHECK(c[0] == 3.0F && c[1] == 2.0F && c[2] == 0.5F && c[3] == 1.0F);
    FAILS(exmy_unit_multiply(unit, 1, 1, 0, left, right, NULL, NULL, NULL, c), EXMY_STATUS_ARGUMENT, "k is 0");
    FAILS(exmy_unit_dot(unit, 2, a, NULL, NULL, NULL, 0, &result), EXMY_STATUS_ARGUMENT, "b is null");
    exmy_unit_free(unit);

    /* 32 products of 1, times 2 and 4. */
    uint8_t ones[32], scale_a = 128, scale_b = 129;
    memset(ones, 0x38, sizeof ones);
    OK(exmy_unit_new("blackwell:mxfp8-e4m3", &unit));
    OK(exmy_unit_dot(unit, 32, ones, ones, &scale_a, &scale_b, 0, &result));
    CHECK(result == 0x43800000); /* 256 */
    FAILS(exmy_unit_dot(unit, 32, ones, ones, &scale_a, NULL, 0, &result), EXMY_STATUS_ARGUMENT, "b_scales");
    exmy_unit_free(unit);
    FAILS(exmy_unit_new("hopper", &unit), EXMY_STATUS_NAME, "operands");
}

/* Steps of one product: 1 + 0.125 is half way from 1 to 1.25 in E5M2, and 0.5 more is exact, so that of two random
 * words the first decides between 1.5 and 1.75. */
static void random_units(void) {
    const uint8_t a[2] = {0x3C, 0x38}, b[4] = {0x3C, 0x3C, 0x3C, 0x3C};
    uint32_t words[4] = {0x80000000, 0, 0x7FFFFFFF, 0xFFFFFFFF};
    uint64_t result = 0;
    float d[2] = {0.125F, 0.125F};
    exmy_unit *unit = NULL;
    char text[2048];
    size_t count = 7, length = 0;
    OK(exmy_unit_new("custom,l=1,out=e5m2@sr4:e5m2", &unit));
    OK(exmy_unit_words(unit, 2, &count));
    CHECK(count == 2);
    OK(exmy_unit_dot_random(unit, 2, a, b, NULL, NULL, 0x3E000000, words, &result));
    CHECK(result == 0x3FE00000);
    OK(exmy_unit_dot_random(unit, 2, a, b, NULL, NULL, 0x3E000000, words + 2, &result));
    CHECK(result == 0x3FC00000);
    OK(exmy_unit_multiply_random(unit, 1, 2, 2, a, b, NULL, NULL, d, words, d));
    CHECK(d[0] == 1.75F && d[1] == 1.5F);
    OK(exmy_unit_explain_random(unit, 2, a, b, NULL, NULL, 0x3E000000, words, text, sizeof text, &length));
    CHECK(strstr(text, "random word 0x80000000: 8 of 16") != NULL && length == strlen(text));
    FAILS(exmy_unit_dot(unit, 2, a, b, NULL, NULL, 0, &result), EXMY_STATUS_ARGUMENT, "exmy_unit_dot_random");
    FAILS(exmy_unit_multiply(unit, 1, 2, 2, a, b, NULL, NULL, NULL, d), EXMY_STATUS_ARGUMENT,
          "exmy_unit_multiply_random");
    FAILS(exmy_unit_explain(unit, 2, a, b, NULL, NULL, 0, text, sizeof text, NULL), EXMY_STATUS_ARGUMENT,
          "exmy_unit_explain_random");
    FAILS(exmy_unit_dot_random(unit, 2, a, b, NULL, NULL, 0, NULL, &result), EXMY_STATUS_ARGUMENT, "words is null");
    FAILS(exmy_unit_multiply_random(unit, 1, 2, 2, a, b, NULL, NULL, NULL, words, words), EXMY_STATUS_ARGUMENT,
          "overlap");
    FAILS(exmy_unit_words(unit, 2, NULL), EXMY_STATUS_ARGUMENT, "words is null");
    exmy_unit_free(unit);

    /* A unit without random words takes none: 1 + 0.125 in Hopper's. */
    OK(exmy_unit_new("hopper:e5m2", &unit));
    OK(exmy_unit_words(unit, 100, &count));
    CHECK(count == 0);
    OK(exmy_unit_dot_random(unit, 1, a, b, NULL, NULL, 0x3E000000, NULL, &result));
    CHECK(result == 0x3F900000);
    exmy_unit_free(unit);
    FAILS(exmy_unit_new("amx,out=f32@sr8:bf16", &unit), EXMY_STATUS_NAME, "srN works with the orders");
}

static exmy_matrix matrix(const exmy_format *format, const void *codes, size_t rows, size_t cols) {
    exmy_matrix made;
    memset(&made, 0, sizeof made);
    made.format = format;
    made.codes = codes;
    made.rows = rows;
    made.cols = cols;
    return made;
}

static void products(void) {
    exmy_format *f32 = NULL, *e4m3 = NULL;
    exmy_product *product = NULL;
    float x[4] = {1, 2, 3, 4}, y[2] = {0.5F, -1}, c[2] = {0, 0};
    uint8_t codes[2] = {0, 0};
    exmy_format_facts facts;
    uint64_t non_finite = 99;
    OK(exmy_format_new("f32", &f32));
    OK(exmy_format_new("e4m3", &e4m3));
    exmy_matrix a = matrix(f32, x, 2, 2), b = matrix(f32, y, 2, 1);

    /* -1.5 and -2.5 times 10; -25 is a tie of -24 and -26 in E4M3. */
    OK(exmy_product_new("fma", "output=e4m3", &product));
    OK(exmy_gemm(product, &a, &b, 10.0F, 0.0F, NULL, c, 0, &non_finite));
    CHECK(c[0] == -15.0F && c[1] == -24.0F && non_finite == 0);
    OK(exmy_gemm_codes(product, &a, &b, 10.0F, NULL, codes));
    CHECK(codes[0] == 0xD7 && codes[1] == 0xDC); /* -1.875 * 2^3, -1.5 * 2^4 */
    OK(exmy_product_describe(product, &facts));
    CHECK(facts.bits == 8 && facts.mantissa_bits == 3);
    FAILS(exmy_product_describe(NULL, &facts), EXMY_STATUS_ARGUMENT, "product is null");
    exmy_product_free(product);

    OK(exmy_product_new("exact", NULL, &product));
    c[0] = c[1] = 100.0F;
    OK(exmy_gemm(product, &a, &b, 1.0F, 0.5F, NULL, c, 0, NULL));
    CHECK(c[0] == 48.5F && c[1] == 47.5F);
    a.transposed = 1; /* 1 3, 2 4 */
    OK(exmy_gemm(product, &a, &b, 1.0F, 0.0F, NULL, c, 1, NULL));
    CHECK(c[0] == -2.5F && c[1] == -3.0F);
    a.row_stride = 1, a.col_stride = 2, a.transposed = 0; /* the same */
    OK(exmy_gemm(product, &a, &b, 1.0F, 0.0F, NULL, c, 1, NULL));
    CHECK(c[0] == -2.5F && c[1] == -3.0F);
    FAILS(exmy_gemm(product, &b, &b, 1.0F, 0.0F, NULL, c, 0, NULL), EXMY_STATUS_UNSUPPORTED, "(2 x 1) times");
    FAILS(exmy_gemm(product, &a, &b, 1.0F, 0.0F, NULL, y, 0, NULL), EXMY_STATUS_ARGUMENT, "overlap");
    FAILS(exmy_gemm(product, &a, NULL, 1.0F, 0.0F, NULL, c, 0, NULL), EXMY_STATUS_ARGUMENT, "b is null");
    a.rows = SIZE_MAX, a.row_stride = SIZE_MAX;
    FAILS(exmy_gemm(product, &a, &b, 1.0F, 0.0F, NULL, c, 0, NULL), EXMY_STATUS_ARGUMENT, "memory");
    a.format = NULL;
    FAILS(exmy_gemm(product, &a, &b, 1.0F, 0.0F, NULL, c, 0, NULL), EXMY_STATUS_ARGUMENT, "a has neither");

    /* 1 and 3 as MXFP4, times the rows of two outputs: 4 - 1.5 and 0.25 + 3. */
    exmy_quantizer *quantizer = NULL;
    exmy_blocks *inputs = NULL, *weights = NULL;
    float input[2] = {1.0F, 2.6F}, weight[4] = {4.0F, -0.5F, 0.25F, 1.0F};
    exmy_matrix left = matrix(NULL, NULL, 0, 0), right = left;
    OK(exmy_quantizer_new("mxfp4", &quantizer));
    OK(exmy_quantize(quantizer, input, 1, 2, 0, EXMY_AXIS_COLS, NULL, &inputs));
    OK(exmy_quantize(quantizer, weight, 2, 2, 0, EXMY_AXIS_COLS, NULL, &weights));
    left.blocks = inputs, right.blocks = weights, right.transposed = 1;
    OK(exmy_gemm(product, &left, &right, 1.0F, 0.0F, NULL, c, 0, NULL));
    CHECK(c[0] == 2.5F && c[1] == 3.25F);
    exmy_blocks_free(inputs);
    exmy_blocks_free(weights);
    exmy_quantizer_free(quantizer);
    exmy_product_free(product);

    /* 448 * 448 is beyond E4M3; a chain in stochastic E4M3 needs random words. */
    uint8_t large[1] = {0x7E}, one[1] = {0x38};
    exmy_random random = {1, NULL};
    a = matrix(e4m3, large, 1, 1), b = matrix(e4m3, one, 1, 1);
    OK(exmy_product_new("hopper", "output=e4m3,overflow=to-nan,non-finite=error", &product));
    OK(exmy_gemm(product, &a, &b, 1.0F, 0.0F, NULL, c, 0, NULL));
    CHECK(c[0] == 448.0F);
    FAILS(exmy_gemm(product, &a, &a, 1.0F, 0.0F, NULL, c, 0, NULL), EXMY_STATUS_UNSUPPORTED, "infinite or NaN");
    exmy_product_free(product);
    OK(exmy_product_new("fma:e4m3@sr4", "round=rtz", &product));
    FAILS(exmy_gemm(product, &a, &b, 1.0F, 0.0F, NULL, c, 0, NULL), EXMY_STATUS_ARGUMENT, "null, and fma:e4m3@sr4");
    OK(exmy_gemm(product, &a, &b, 1.0F, 0.0F, &random, c, 0, NULL));
    CHECK(c[0] == 448.0F);
    exmy_product_free(product);
    OK(exmy_product_new("exact", "round=sr4", &product));
    FAILS(exmy_gemm(product, &a, &b, 1.0F, 0.0F, NULL, c, 0, NULL), EXMY_STATUS_ARGUMENT, "null, and sr4 needs");
    exmy_product_free(product);
    FAILS(exmy_product_new("exakt", NULL, &product), EXMY_STATUS_NAME, "exact");
    FAILS(exmy_product_new("exact", "input=f32", &product), EXMY_STATUS_NAME, "output=");
    exmy_format_free(f32);
    exmy_format_free(e4m3);
}

int main(void) {
    CHECK(strcmp(exmy_message(), "") == 0);
    CHECK(strcmp(exmy_version(), EXPECTED_VERSION) == 0);
    formats();
    functions();
    conversions();
    packing();
    blocks();
    randoms();
    units();
    random_units();
    products();
    printf("%d failures\n", failures);
    return failures != 0;
}
