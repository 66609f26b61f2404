/* What DPI-C passes as open arrays, for exmy_pkg.sv: codes of 64 bits go into the integers that exmy.h asks for, and
 * come back. An array that is too short is an error with a sentence, and nothing is read or written beyond its end. */
#include "exmy.h"
#include "svdpi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sentence about an array of the bench. The library's own is then about MARK, until another call fails. */
static char complaint[160];
#define MARK "a sentence of exmy_dpi.c"

/* An argument that cannot be used: the complaint is about it. */
static int complained(void) {
    exmy_format *none = NULL;
    (void)exmy_format_new(MARK, &none);
    return EXMY_STATUS_ARGUMENT;
}

static int too_short(const char *name, size_t found, size_t wanted) {
    snprintf(complaint, sizeof complaint, "%s has %zu elements, and %zu are needed", name, found, wanted);
    return complained();
}

static int too_long(const char *name, size_t found, size_t wanted) {
    snprintf(complaint, sizeof complaint, "%s has %zu elements, and a has %zu", name, found, wanted);
    return complained();
}

static int out_of_memory(void) {
    snprintf(complaint, sizeof complaint, "there is no memory left for a copy of the arrays");
    return complained();
}

/* Where an open array begins, if it has `count` elements of a C type, one after the other. */
static int found(const svOpenArrayHandle array, size_t count, const char *name, void **begin) {
    size_t size = (size_t)svSize(array, 1);
    *begin = svGetArrayPtr(array);
    if (size < count || (*begin == NULL && count != 0)) return too_short(name, *begin == NULL ? 0 : size, count);
    return EXMY_STATUS_OK;
}

/* That a matrix is no larger than its array: the product of its sides fits then, too. */
static int sized(uint64_t rows, uint64_t cols, const char *name, const svOpenArrayHandle array) {
    size_t size = (size_t)svSize(array, 1);
    if (rows == 0 || cols <= size / rows) return EXMY_STATUS_OK;
    return too_short(name, size, cols > SIZE_MAX / rows ? SIZE_MAX : rows * cols);
}

static size_t bytes_of(uint32_t bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8; }

/* Whether `count` codes have no bits above the lowest `bits`. */
static int fit(const svOpenArrayHandle array, size_t count, uint32_t bits, const char *name) {
    void *begin;
    int status = found(array, count, name, &begin);
    if (status != EXMY_STATUS_OK || bits >= 64) return status;
    for (size_t i = 0; i < count; i++) {
        uint64_t code = ((const uint64_t *)begin)[i];
        if (code >> bits == 0) continue;
        snprintf(complaint, sizeof complaint, "%s has 0x%" PRIx64 " at place %zu from its left, and codes have %" PRIu32
                 " bits", name, code, i, bits);
        return complained();
    }
    return EXMY_STATUS_OK;
}

/* Codes that fit, in the smallest integers that hold `bits`, in memory of their own. */
static int taken(const svOpenArrayHandle array, size_t count, uint32_t bits, const char *name, void **made) {
    size_t bytes = bytes_of(bits);
    int status = fit(array, count, bits, name);
    if (status != EXMY_STATUS_OK) return status;
    const uint64_t *wide = (const uint64_t *)svGetArrayPtr(array);
    unsigned char *codes = (unsigned char *)calloc(count + 1, bytes);
    if (codes == NULL) return out_of_memory();
    for (size_t i = 0; i < count; i++) {
        uint8_t one = (uint8_t)wide[i];
        uint16_t two = (uint16_t)wide[i];
        uint32_t four = (uint32_t)wide[i];
        const void *code = &wide[i];
        if (bytes == 1) code = &one;
        if (bytes == 2) code = &two;
        if (bytes == 4) code = &four;
        memcpy(codes + i * bytes, code, bytes);
    }
    *made = codes;
    return EXMY_STATUS_OK;
}

/* The way back, into an array of longint. */
static void widen(const void *codes, size_t count, uint32_t bits, uint64_t *wide) {
    for (size_t i = 0; i < count; i++)
        switch (bytes_of(bits)) {
        case 1: wide[i] = ((const uint8_t *)codes)[i]; break;
        case 2: wide[i] = ((const uint16_t *)codes)[i]; break;
        case 4: wide[i] = ((const uint32_t *)codes)[i]; break;
        default: wide[i] = ((const uint64_t *)codes)[i];
        }
}

/* The operands of a dot product: a, b and the scales of both. */
typedef struct {
    size_t k;
    void *codes[4];
} operands;

static int prepare(const exmy_unit *unit, const svOpenArrayHandle arrays[4], operands *made) {
    exmy_unit_facts facts;
    int status = exmy_unit_describe(unit, &facts);
    memset(made, 0, sizeof *made);
    if (status != EXMY_STATUS_OK) return status;
    made->k = (size_t)svSize(arrays[0], 1);
    for (int side = 0; side < 2 && status == EXMY_STATUS_OK; side++) {
        const char *names[4] = {"a", "b", "a_scales", "b_scales"};
        size_t size = (size_t)svSize(arrays[side], 1);
        if (size > made->k) status = too_long(names[side], size, made->k);
        if (status == EXMY_STATUS_OK)
            status = taken(arrays[side], made->k, facts.element_bits[side], names[side], &made->codes[side]);
        if (status == EXMY_STATUS_OK && facts.block[side] != 0) {
            size_t blocks = (made->k + facts.block[side] - 1) / facts.block[side];
            status = taken(arrays[2 + side], blocks, facts.scale_bits[side], names[2 + side],
                           &made->codes[2 + side]);
        }
    }
    return status;
}

/* The same, and the unit's random words, each in an element of its own. */
static int prepare_random(const exmy_unit *unit, const svOpenArrayHandle arrays[4], const svOpenArrayHandle words,
                          operands *made, void **random) {
    size_t count = 0;
    int status = prepare(unit, arrays, made);
    if (status == EXMY_STATUS_OK) status = exmy_unit_words(unit, made->k, &count);
    if (status == EXMY_STATUS_OK) status = taken(words, count, 32, "words", random);
    return status;
}

static void discard(operands *made) {
    for (int i = 0; i < 4; i++) free(made->codes[i]);
}

#ifdef __cplusplus
extern "C" {
#endif

const char *exmy_dpi_message(void) {
    return strstr(exmy_message(), MARK) != NULL ? complaint : exmy_message();
}

int exmy_dpi_unit_dot(void *unit, const svOpenArrayHandle a, const svOpenArrayHandle b, const svOpenArrayHandle a_scales,
                      const svOpenArrayHandle b_scales, uint64_t c, uint64_t *result) {
    const svOpenArrayHandle arrays[4] = {a, b, a_scales, b_scales};
    operands made;
    int status = prepare((const exmy_unit *)unit, arrays, &made);
    if (status == EXMY_STATUS_OK)
        status = exmy_unit_dot((const exmy_unit *)unit, made.k, made.codes[0], made.codes[1], made.codes[2],
                               made.codes[3], c, result);
    discard(&made);
    return status;
}

int exmy_dpi_unit_dot_random(void *unit, const svOpenArrayHandle a, const svOpenArrayHandle b,
                             const svOpenArrayHandle a_scales, const svOpenArrayHandle b_scales, uint64_t c,
                             const svOpenArrayHandle words, uint64_t *result) {
    const svOpenArrayHandle arrays[4] = {a, b, a_scales, b_scales};
    operands made;
    void *random = NULL;
    int status = prepare_random((const exmy_unit *)unit, arrays, words, &made, &random);
    if (status == EXMY_STATUS_OK)
        status = exmy_unit_dot_random((const exmy_unit *)unit, made.k, made.codes[0], made.codes[1], made.codes[2],
                                      made.codes[3], c, (const uint32_t *)random, result);
    discard(&made);
    free(random);
    return status;
}

/* The last explanation, in memory that grows with it. */
static char *text;
static size_t room;

/* Memory for a text of so many bytes and the zero behind it. */
static int make_room(size_t length) {
    if (length < room) return EXMY_STATUS_OK;
    char *more = (char *)realloc(text, length + 1);
    if (more == NULL) return out_of_memory();
    text = more;
    room = length + 1;
    return EXMY_STATUS_OK;
}

/* Asks how long the explanation is, then for the text. */
static int explained(const exmy_unit *unit, const operands *made, uint64_t c, const uint32_t *random) {
    void *const *codes = made->codes;
    size_t length = 0;
    int status = EXMY_STATUS_OK;
    for (int pass = 0; pass < 2 && status == EXMY_STATUS_OK; pass++) {
        char *to = pass == 0 ? NULL : text;
        size_t size = pass == 0 ? 0 : room;
        status = random == NULL
                     ? exmy_unit_explain(unit, made->k, codes[0], codes[1], codes[2], codes[3], c, to, size, &length)
                     : exmy_unit_explain_random(unit, made->k, codes[0], codes[1], codes[2], codes[3], c, random, to,
                                                size, &length);
        if (status == EXMY_STATUS_OK && pass == 0) status = make_room(length);
    }
    return status;
}

const char *exmy_dpi_unit_explain(void *unit, const svOpenArrayHandle a, const svOpenArrayHandle b,
                                  const svOpenArrayHandle a_scales, const svOpenArrayHandle b_scales, uint64_t c) {
    const svOpenArrayHandle arrays[4] = {a, b, a_scales, b_scales};
    operands made;
    int status = prepare((const exmy_unit *)unit, arrays, &made);
    if (status == EXMY_STATUS_OK) status = explained((const exmy_unit *)unit, &made, c, NULL);
    discard(&made);
    return status == EXMY_STATUS_OK ? text : exmy_dpi_message();
}

const char *exmy_dpi_unit_explain_random(void *unit, const svOpenArrayHandle a, const svOpenArrayHandle b,
                                         const svOpenArrayHandle a_scales, const svOpenArrayHandle b_scales,
                                         uint64_t c, const svOpenArrayHandle words) {
    const svOpenArrayHandle arrays[4] = {a, b, a_scales, b_scales};
    operands made;
    void *random = NULL;
    int status = prepare_random((const exmy_unit *)unit, arrays, words, &made, &random);
    if (status == EXMY_STATUS_OK)
        status = explained((const exmy_unit *)unit, &made, c, (const uint32_t *)random);
    discard(&made);
    free(random);
    return status == EXMY_STATUS_OK ? text : exmy_dpi_message();
}

int exmy_dpi_quantize(void *quantizer, uint64_t rows, uint64_t cols, int axis, const svOpenArrayHandle numbers,
                      uint64_t seed, const char *stream, void **made) {
    const exmy_random random = {seed, stream};
    void *given = NULL;
    int status = sized(rows, cols, "numbers", numbers);
    *made = NULL;
    if (status == EXMY_STATUS_OK) status = taken(numbers, rows * cols, 32, "numbers", &given);
    if (status == EXMY_STATUS_OK)
        status = exmy_quantize((const exmy_quantizer *)quantizer, (const float *)given, rows, cols, 0, axis, &random,
                               (exmy_blocks **)made);
    free(given);
    return status;
}

int exmy_dpi_blocks_parts(void *blocks, const svOpenArrayHandle codes, const svOpenArrayHandle scales,
                          uint64_t *tensor_scale) {
    exmy_blocks_stored stored;
    void *to_codes, *to_scales, *narrow = NULL;
    int status = exmy_blocks_parts((const exmy_blocks *)blocks, &stored);
    if (status != EXMY_STATUS_OK) return status;
    size_t count = stored.rows * stored.cols, scale_count = stored.scales_size / stored.scale_bytes;
    status = found(codes, count, "codes", &to_codes);
    if (status == EXMY_STATUS_OK) status = found(scales, scale_count, "scales", &to_scales);
    if (status == EXMY_STATUS_OK && (narrow = calloc(count + 1, 2)) == NULL) status = out_of_memory();
    if (status == EXMY_STATUS_OK) status = exmy_unpack("stream", stored.element_bits, count, stored.codes, narrow);
    if (status == EXMY_STATUS_OK) {
        uint32_t tensor = 0;
        if (stored.has_tensor_scale) memcpy(&tensor, &stored.tensor_scale, 4);
        *tensor_scale = tensor;
        widen(narrow, count, stored.element_bits, (uint64_t *)to_codes);
        /* Scales are little-endian. */
        for (size_t i = 0; i < scale_count; i++) {
            uint64_t scale = 0;
            for (uint32_t byte = stored.scale_bytes; byte > 0; byte--)
                scale = scale << 8 | stored.scales[i * stored.scale_bytes + byte - 1];
            ((uint64_t *)to_scales)[i] = scale;
        }
    }
    free(narrow);
    return status;
}

int exmy_dpi_blocks_from_parts(const char *format, uint64_t rows, uint64_t cols, int axis,
                               const svOpenArrayHandle codes, const svOpenArrayHandle scales, uint64_t tensor_scale,
                               void **made) {
    exmy_blocks_stored stored;
    exmy_quantizer *quantizer = NULL;
    exmy_blocks *zeros = NULL;
    void *narrow = NULL;
    uint8_t *packed = NULL, *packed_scales = NULL;
    int status = sized(rows, cols, "codes", codes);
    *made = NULL;
    /* How the parts are stored is what zeros in this format show. */
    if (status == EXMY_STATUS_OK) status = exmy_quantizer_new(format, &quantizer);
    if (status == EXMY_STATUS_OK) {
        float *numbers = (float *)calloc(rows * cols + 1, sizeof(float));
        status = numbers == NULL ? out_of_memory()
                                 : exmy_quantize(quantizer, numbers, rows, cols, 0, axis, NULL, &zeros);
        free(numbers);
    }
    if (status == EXMY_STATUS_OK) status = exmy_blocks_parts(zeros, &stored);
    if (status == EXMY_STATUS_OK) status = taken(codes, rows * cols, stored.element_bits, "codes", &narrow);
    if (status == EXMY_STATUS_OK)
        status = fit(scales, stored.scales_size / stored.scale_bytes, 8 * stored.scale_bytes, "scales");
    if (status == EXMY_STATUS_OK) {
        packed = (uint8_t *)malloc(stored.codes_size + 1);
        packed_scales = (uint8_t *)malloc(stored.scales_size + 1);
        if (packed == NULL || packed_scales == NULL) status = out_of_memory();
    }
    if (status == EXMY_STATUS_OK) status = exmy_pack("stream", stored.element_bits, rows * cols, narrow, packed);
    if (status == EXMY_STATUS_OK) {
        float tensor;
        uint32_t code = (uint32_t)tensor_scale;
        const uint64_t *from_scales = (const uint64_t *)svGetArrayPtr(scales);
        memcpy(&tensor, &code, 4);
        for (size_t i = 0; i < stored.scales_size; i++)
            packed_scales[i] = (uint8_t)(from_scales[i / stored.scale_bytes] >> 8 * (i % stored.scale_bytes));
        status = exmy_blocks_from_parts(format, axis, rows, cols, packed, stored.codes_size, packed_scales,
                                        stored.scales_size, code == 0 ? NULL : &tensor, (exmy_blocks **)made);
    }
    free(narrow);
    free(packed);
    free(packed_scales);
    exmy_blocks_free(zeros);
    exmy_quantizer_free(quantizer);
    return status;
}

int exmy_dpi_quantize_values(void *quantizer, uint64_t rows, uint64_t cols, int axis, const svOpenArrayHandle numbers,
                             uint64_t seed, const char *stream, const svOpenArrayHandle results) {
    const exmy_random random = {seed, stream};
    void *given = NULL, *to;
    float *values = NULL;
    int status = sized(rows, cols, "numbers", numbers);
    if (status == EXMY_STATUS_OK) status = found(results, rows * cols, "results", &to);
    if (status == EXMY_STATUS_OK) status = taken(numbers, rows * cols, 32, "numbers", &given);
    if (status == EXMY_STATUS_OK && (values = (float *)calloc(rows * cols + 1, sizeof(float))) == NULL)
        status = out_of_memory();
    if (status == EXMY_STATUS_OK)
        status = exmy_quantize_values((const exmy_quantizer *)quantizer, (const float *)given, rows, cols, 0, axis,
                                      &random, values);
    if (status == EXMY_STATUS_OK) widen(values, rows * cols, 32, (uint64_t *)to);
    free(values);
    free(given);
    return status;
}

int exmy_dpi_dequantize(void *blocks, const svOpenArrayHandle results) {
    exmy_blocks_stored stored;
    void *to;
    int status = exmy_blocks_parts((const exmy_blocks *)blocks, &stored);
    if (status != EXMY_STATUS_OK) return status;
    size_t count = stored.rows * stored.cols;
    status = found(results, count, "results", &to);
    if (status != EXMY_STATUS_OK) return status;
    float *numbers = (float *)calloc(count + 1, sizeof(float));
    status = numbers == NULL ? out_of_memory() : exmy_dequantize((const exmy_blocks *)blocks, numbers);
    if (status == EXMY_STATUS_OK) widen(numbers, count, 32, (uint64_t *)to);
    free(numbers);
    return status;
}

int exmy_dpi_pack(const char *layout, uint32_t width, const svOpenArrayHandle codes, const svOpenArrayHandle bytes) {
    size_t count = (size_t)svSize(codes, 1), size = 0;
    void *narrow = NULL, *to;
    int status = exmy_packed_size(layout, width, count, &size);
    if (status == EXMY_STATUS_OK) status = found(bytes, size, "bytes", &to);
    if (status == EXMY_STATUS_OK) status = taken(codes, count, width, "codes", &narrow);
    if (status == EXMY_STATUS_OK) status = exmy_pack(layout, width, count, narrow, (uint8_t *)to);
    free(narrow);
    return status;
}

int exmy_dpi_unpack(const char *layout, uint32_t width, const svOpenArrayHandle bytes, const svOpenArrayHandle codes) {
    size_t count = (size_t)svSize(codes, 1), size = 0;
    void *from, *to, *narrow = NULL;
    int status = exmy_packed_size(layout, width, count, &size);
    if (status == EXMY_STATUS_OK) status = found(bytes, size, "bytes", &from);
    if (status == EXMY_STATUS_OK) status = found(codes, count, "codes", &to);
    if (status == EXMY_STATUS_OK && (narrow = calloc(count + 1, 2)) == NULL) status = out_of_memory();
    if (status == EXMY_STATUS_OK) status = exmy_unpack(layout, width, count, (const uint8_t *)from, narrow);
    if (status == EXMY_STATUS_OK) widen(narrow, count, width, (uint64_t *)to);
    free(narrow);
    return status;
}

/* The product of two operands: m x n numbers, or codes of the output's format. */
static int multiply(const void *product, const exmy_matrix *a, const exmy_matrix *b, size_t m, size_t n, uint64_t seed,
                    const char *stream, const svOpenArrayHandle results, int as_codes) {
    const exmy_product *by = (const exmy_product *)product;
    const exmy_random random = {seed, stream};
    exmy_format_facts facts;
    uint32_t bits = 32;
    void *to, *made;
    int status = sized(m, n, "results", results);
    if (status == EXMY_STATUS_OK) status = found(results, m * n, "results", &to);
    if (status == EXMY_STATUS_OK) status = exmy_product_describe(by, &facts);
    if (status != EXMY_STATUS_OK) return status;
    if (as_codes) bits = facts.bits;
    made = calloc(m * n + 1, bytes_of(bits));
    if (made == NULL) return out_of_memory();
    status = as_codes ? exmy_gemm_codes(by, a, b, 1, &random, made)
                      : exmy_gemm(by, a, b, 1, 0, &random, (float *)made, 0, NULL);
    if (status == EXMY_STATUS_OK) widen(made, m * n, bits, (uint64_t *)to);
    free(made);
    return status;
}

/* The product of two operands of codes. */
static int multiply_arrays(const void *product, const uint64_t rows[2], const uint64_t cols[2], const char *texts[2],
                           const svOpenArrayHandle arrays[2], uint64_t seed, const char *stream,
                           const svOpenArrayHandle results, int as_codes) {
    const char *names[2] = {"a", "b"};
    exmy_format *formats[2] = {NULL, NULL};
    void *codes[2] = {NULL, NULL};
    exmy_matrix sides[2];
    int status = EXMY_STATUS_OK;
    memset(sides, 0, sizeof sides);
    for (int side = 0; side < 2 && status == EXMY_STATUS_OK; side++) {
        exmy_format_facts facts;
        status = sized(rows[side], cols[side], names[side], arrays[side]);
        if (status == EXMY_STATUS_OK) status = exmy_format_new(texts[side], &formats[side]);
        if (status == EXMY_STATUS_OK) status = exmy_format_describe(formats[side], &facts);
        if (status == EXMY_STATUS_OK)
            status = taken(arrays[side], rows[side] * cols[side], facts.bits, names[side], &codes[side]);
        sides[side].format = formats[side];
        sides[side].codes = codes[side];
        sides[side].rows = rows[side];
        sides[side].cols = cols[side];
    }
    if (status == EXMY_STATUS_OK)
        status = multiply(product, &sides[0], &sides[1], rows[0], cols[1], seed, stream, results, as_codes);
    for (int side = 0; side < 2; side++) {
        exmy_format_free(formats[side]);
        free(codes[side]);
    }
    return status;
}

int exmy_dpi_gemm(void *product, uint64_t m, uint64_t n, uint64_t k, const char *a_format, const svOpenArrayHandle a,
                  const char *b_format, const svOpenArrayHandle b, uint64_t seed, const char *stream,
                  const svOpenArrayHandle results) {
    const svOpenArrayHandle arrays[2] = {a, b};
    const char *texts[2] = {a_format, b_format};
    const uint64_t rows[2] = {m, k}, cols[2] = {k, n};
    return multiply_arrays(product, rows, cols, texts, arrays, seed, stream, results, 0);
}

int exmy_dpi_gemm_codes(void *product, uint64_t m, uint64_t n, uint64_t k, const char *a_format,
                        const svOpenArrayHandle a, const char *b_format, const svOpenArrayHandle b, uint64_t seed,
                        const char *stream, const svOpenArrayHandle results) {
    const svOpenArrayHandle arrays[2] = {a, b};
    const char *texts[2] = {a_format, b_format};
    const uint64_t rows[2] = {m, k}, cols[2] = {k, n};
    return multiply_arrays(product, rows, cols, texts, arrays, seed, stream, results, 1);
}

static int multiply_blocks(const void *product, const void *a, const void *b, uint64_t seed, const char *stream,
                           const svOpenArrayHandle results, int as_codes) {
    exmy_blocks_stored stored[2];
    exmy_matrix sides[2];
    memset(sides, 0, sizeof sides);
    sides[0].blocks = (const exmy_blocks *)a;
    sides[1].blocks = (const exmy_blocks *)b;
    for (int side = 0; side < 2; side++) {
        int status = exmy_blocks_parts(sides[side].blocks, &stored[side]);
        if (status != EXMY_STATUS_OK) return status;
    }
    return multiply(product, &sides[0], &sides[1], stored[0].rows, stored[1].cols, seed, stream, results, as_codes);
}

int exmy_dpi_gemm_blocks(void *product, void *a, void *b, uint64_t seed, const char *stream,
                         const svOpenArrayHandle results) {
    return multiply_blocks(product, a, b, seed, stream, results, 0);
}

int exmy_dpi_gemm_blocks_codes(void *product, void *a, void *b, uint64_t seed, const char *stream,
                               const svOpenArrayHandle results) {
    return multiply_blocks(product, a, b, seed, stream, results, 1);
}

#ifdef __cplusplus
}
#endif
