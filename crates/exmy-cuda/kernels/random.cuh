// Philox4x32-10 (SC 2011) by address: the library's `random::Philox`. Element i has word i mod 4 of block i
// div 4.
#pragma once
#include "prelude.cuh"

struct Philox {
    u32 key[2], stream[2];
    // The word of a matrix's first element.
    u64 first;
};

struct Words {
    u32 at[4];
};

DEVICE Words philox_block(const Philox& p, u64 block) {
    u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = p.stream[0], c3 = p.stream[1];
    u32 k0 = p.key[0], k1 = p.key[1];
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 p = (u64)0xD2511F53u * c0, q = (u64)0xCD9E8D57u * c2;
        c0 = (u32)(q >> 32) ^ c1 ^ k0;
        c1 = (u32)q;
        c2 = (u32)(p >> 32) ^ c3 ^ k1;
        c3 = (u32)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return Words{{c0, c1, c2, c3}};
}

DEVICE u32 philox_word(const Philox& p, u64 index) {
    index += p.first;
    Words words = philox_block(p, index / 4);
    u32 at = index % 4;
    return at < 2 ? (at ? words.at[1] : words.at[0]) : (at == 2 ? words.at[2] : words.at[3]);
}

// The words of N elements from `index` on, N a multiple of 4.
template <int N> DEVICE void philox_words(const Philox& p, u64 index, u32* out) {
    u64 first = index + p.first;
    if (first % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            Words words = philox_block(p, first / 4 + i / 4);
#pragma unroll
            for (int j = 0; j < 4; j++) out[i + j] = words.at[j];
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) out[i] = philox_word(p, index + i);
    }
}
