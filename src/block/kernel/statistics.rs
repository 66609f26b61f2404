//! Elements to codes, and what became of them on the way: the pass of codes, which knows each
//! element's image before it makes a code of it.

use super::{Elements, LANES, Mode, Places};
use crate::block::statistics::{Lanes, PIECE, Passing, Sums};
use crate::minifloat::Bits;
use crate::simd::kernel;
use core::marker::PhantomData;

/// Where codes and figures go.
pub(crate) struct CodesAndStatistics<'a, M, C> {
    /// A code an element.
    pub(crate) codes: &'a mut [C],
    /// Counts and maxima.
    pub(crate) lanes: &'a mut Lanes,
    /// The sums of each [`PIECE`] elements, the last of which may be fewer; where these need care the
    /// piece's other figures are left out.
    pub(crate) sums: &'a mut [Sums],
    /// How codes are rounded.
    pub(crate) mode: PhantomData<M>,
}

kernel! {
    /// As [`pass`](super::pass) for codes. `limits` are the largest magnitudes that blocks can
    /// express, as many as there are scales.
    pub(crate) fn codes_and_statistics<'a, T: Pieces>(
        places: &'a Places,
        of: Elements<'a>,
        limits: &'a [f32],
        out: T,
    ) {
        let (places, mut out) = (*places, out);
        match of.width {
            1 => {
                let at = |numbers: &[f32], i: usize, len: usize| {
                    let mut all = [0.0; LANES];
                    all[..len].copy_from_slice(&numbers[i..i + len]);
                    all
                };
                out.pieces(&places, of, |i| {
                    let len = (of.x.len() - i).min(LANES);
                    match len {
                        LANES => [of.factors, of.scales, limits].map(|of| at(of, i, LANES)),
                        _ => [of.factors, of.scales, limits].map(|of| at(of, i, len)),
                    }
                });
            }
            // The widths of NVFP4 and MX, so that a block costs no counting.
            16 => out.pieces(&places, of, |i| one(&of, limits, i / 16)),
            32 => out.pieces(&places, of, |i| one(&of, limits, i / 32)),
            width => out.pieces(&places, of, |i| one(&of, limits, i / width)),
        }
    }
}

/// The numbers of one block.
#[inline(always)]
fn one(of: &Elements<'_>, limits: &[f32], block: usize) -> [[f32; LANES]; 3] {
    [[of.factors[block]; LANES], [of.scales[block]; LANES], [limits[block]; LANES]]
}

/// What [`codes_and_statistics`] writes to; [`CodesAndStatistics`] alone.
pub(crate) trait Pieces {
    /// Goes over all pieces. `numbers` are factors, scales and limits of the elements from one on, a
    /// multiple of [`LANES`].
    fn pieces(
        &mut self,
        places: &Places,
        of: Elements<'_>,
        numbers: impl Fn(usize) -> [[f32; LANES]; 3],
    );
}

impl<M: Mode, C: Bits> Pieces for CodesAndStatistics<'_, M, C> {
    #[inline(always)]
    fn pieces(
        &mut self,
        places: &Places,
        of: Elements<'_>,
        numbers: impl Fn(usize) -> [[f32; LANES]; 3],
    ) {
        let pieces = of.x.chunks(PIECE).zip(self.codes.chunks_mut(PIECE)).zip(&mut *self.sums);
        for (p, ((x, codes), sums)) in pieces.enumerate() {
            let mut piece = Passing::new();
            let (x, x_rest) = x.as_chunks::<LANES>();
            let (codes, codes_rest) = codes.as_chunks_mut::<LANES>();
            let mut at = p * PIECE;
            for (x, codes) in x.iter().zip(codes) {
                let words = words::<M>(&of, at, LANES);
                *codes = group::<M, C>(places, x, numbers(at), of.decode, words, &mut piece);
                at += LANES;
            }
            if !x_rest.is_empty() {
                // Zeros are no news to any figure.
                let mut last = [0.0; LANES];
                last[..x_rest.len()].copy_from_slice(x_rest);
                let words = words::<M>(&of, at, x_rest.len());
                let all = group::<M, C>(places, &last, numbers(at), of.decode, words, &mut piece);
                codes_rest.copy_from_slice(&all[..x_rest.len()]);
            }
            *sums = piece.finish(self.lanes);
        }
    }
}

#[inline(always)]
fn words<M: Mode>(of: &Elements<'_>, at: usize, len: usize) -> [u32; LANES] {
    let mut words = [0; LANES];
    if M::RANDOM {
        words[..len].copy_from_slice(&of.words[at..at + len]);
    }
    words
}

/// Sixteen elements to codes. Magnitudes alone are compared, as elements and images have one sign.
#[inline(always)]
fn group<M: Mode, C: Bits>(
    places: &Places,
    x: &[f32; LANES],
    [factors, scales, limits]: [[f32; LANES]; 3],
    decode: f32,
    words: [u32; LANES],
    piece: &mut Passing,
) -> [C; LANES] {
    let (mut codes, mut sizes) = ([C::from_u64(0); LANES], [0.0; LANES]);
    let mut images = [0.0; LANES];
    for i in 0..LANES {
        let (t, y) = places.place::<M>(x[i], factors[i], words[i]);
        codes[i] = C::from_u64(u64::from(places.code_of(t, y)));
        images[i] = t * scales[i] * decode;
        sizes[i] = x[i].abs();
    }
    piece.add(&sizes, &images, &limits);
    codes
}
