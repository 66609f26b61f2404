/* What DPI-C passes as open arrays, for exmy_pkg.sv: codes of 64 bits go into the integers that exmy.h asks for. */
#include "exmy.h"
#include "svdpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Codes in the smallest integers that hold `bits`; null if memory ends or the array has fewer than `count`. */
static void *narrowed(const svOpenArrayHandle array, size_t count, uint32_t bits) {
    const uint64_t *wide = (const uint64_t *)svGetArrayPtr(array);
    size_t bytes = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
    unsigned char *codes = (unsigned char *)malloc(count * bytes + 1);
    if (codes == NULL || wide == NULL || (size_t)svSize(array, 1) < count) {
        free(codes);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t one = (uint8_t)wide[i];
        uint16_t two = (uint16_t)wide[i];
        uint32_t four = (uint32_t)wide[i];
        const void *code = bytes == 1 ? (void *)&one : bytes == 2 ? (void *)&two : bytes == 4 ? (void *)&four : (void *)&wide[i];
        memcpy(codes + i * bytes, code, bytes);
    }
    return codes;
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
    for (int side = 0; side < 2; side++) {
        made->codes[side] = narrowed(arrays[side], made->k, facts.element_bits[side]);
        if (facts.block[side] != 0) {
            size_t blocks = (made->k + facts.block[side] - 1) / facts.block[side];
            made->codes[2 + side] = narrowed(arrays[2 + side], blocks, facts.scale_bits[side]);
        }
    }
    return EXMY_STATUS_OK;
}

/* The same, and the unit's random words, each in an element of its own. */
static int prepare_random(const exmy_unit *unit, const svOpenArrayHandle arrays[4], const svOpenArrayHandle words,
                          operands *made, void **random) {
    size_t count = 0;
    int status = prepare(unit, arrays, made);
    if (status == EXMY_STATUS_OK) status = exmy_unit_words(unit, made->k, &count);
    if (status == EXMY_STATUS_OK) *random = narrowed(words, count, 32);
    return status;
}

static void discard(operands *made) {
    for (int i = 0; i < 4; i++) free(made->codes[i]);
}

#ifdef __cplusplus
extern "C" {
#endif

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

static char text[16384];

const char *exmy_dpi_unit_explain(void *unit, const svOpenArrayHandle a, const svOpenArrayHandle b,
                                  const svOpenArrayHandle a_scales, const svOpenArrayHandle b_scales, uint64_t c) {
    const svOpenArrayHandle arrays[4] = {a, b, a_scales, b_scales};
    operands made;
    int status = prepare((const exmy_unit *)unit, arrays, &made);
    if (status == EXMY_STATUS_OK)
        status = exmy_unit_explain((const exmy_unit *)unit, made.k, made.codes[0], made.codes[1], made.codes[2],
                                   made.codes[3], c, text, sizeof text, NULL);
    discard(&made);
    if (status != EXMY_STATUS_OK) snprintf(text, sizeof text, "%s", exmy_message());
    return text;
}

const char *exmy_dpi_unit_explain_random(void *unit, const svOpenArrayHandle a, const svOpenArrayHandle b,
                                         const svOpenArrayHandle a_scales, const svOpenArrayHandle b_scales,
                                         uint64_t c, const svOpenArrayHandle words) {
    const svOpenArrayHandle arrays[4] = {a, b, a_scales, b_scales};
    operands made;
    void *random = NULL;
    int status = prepare_random((const exmy_unit *)unit, arrays, words, &made, &random);
    if (status == EXMY_STATUS_OK)
        status = exmy_unit_explain_random((const exmy_unit *)unit, made.k, made.codes[0], made.codes[1], made.codes[2],
                                          made.codes[3], c, (const uint32_t *)random, text, sizeof text, NULL);
    discard(&made);
    free(random);
    if (status != EXMY_STATUS_OK) snprintf(text, sizeof text, "%s", exmy_message());
    return text;
}

#ifdef __cplusplus
}
#endif
