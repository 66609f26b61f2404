//! Numbers as integers: groups of 32 consecutive ones share a power of two.

use alloc::vec;
use alloc::vec::Vec;

use super::window::Window;
use crate::format::{Format, Value};
use crate::gemm::rows::ExactRows;

/// Consecutive numbers that share a power of two; the blocks of MX formats.
const GROUP: usize = 32;

/// The most bits an integer of a group has: 32 products of two such fit 128 bits with their sign.
const WIDEST: i32 = 60;

/// Many vectors of numbers.
pub(super) struct IntegerLanes {
    pub(super) k: usize,
    /// Integers with their signs; of loose groups the numbers' own significands.
    integers: Vec<i64>,
    groups: Vec<Group>,
    /// Exponents of every number, if there is a loose group.
    exponents: Vec<i32>,
    rows: Vec<Extent>,
}

/// What the numbers of a group have in common.
#[derive(Clone, Copy)]
struct Group {
    /// The power of two of a unit.
    exponent: i32,
    /// Bits of the largest integer; 0 if all are zero. [`LOOSE`] if the numbers lie too far apart to
    /// be integers of one unit.
    bits: i32,
}

const LOOSE: i32 = i32::MAX;

/// The numbers of a vector are multiples of `2^low` below `2^high`.
#[derive(Clone, Copy)]
struct Extent {
    low: i32,
    high: i32,
    /// Whether there is a NaN or an infinity.
    special: bool,
}

/// One vector.
pub(super) struct IntegerRow<'a> {
    pub(super) low: i32,
    pub(super) high: i32,
    pub(super) special: bool,
    integers: &'a [i64],
    groups: &'a [Group],
    exponents: &'a [i32],
}

impl IntegerRow<'_> {
    pub(super) fn is_zero(&self) -> bool {
        self.low > self.high
    }
}

impl IntegerLanes {
    pub(super) fn new(numbers: &ExactRows) -> Self {
        let (count, k) = (numbers.count, numbers.k);
        let mut lanes = Self {
            k,
            integers: vec![0; count * k],
            groups: Vec::with_capacity(count * k.div_ceil(GROUP)),
            exponents: Vec::new(),
            rows: Vec::with_capacity(count),
        };
        for i in 0..count {
            let mut extent = Extent { low: i32::MAX, high: i32::MIN, special: false };
            for (g, codes) in numbers.row(i).chunks(GROUP).enumerate() {
                lanes.group(numbers, codes, i * k + g * GROUP, &mut extent);
            }
            lanes.rows.push(extent);
        }
        lanes
    }

    /// Takes in the numbers of one group, the first of which is number `start` of all.
    fn group(&mut self, numbers: &ExactRows, codes: &[u64], start: usize, extent: &mut Extent) {
        let mut split = [(0_i64, 0_i32); GROUP];
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        for (part, &code) in split.iter_mut().zip(codes) {
            let Some((integer, exponent)) = odd_integer(numbers, code) else {
                extent.special = true;
                continue;
            };
            if integer != 0 {
                *part = (integer, exponent);
                low = low.min(exponent);
                high = high.max(exponent + 64 - integer.unsigned_abs().leading_zeros() as i32);
            }
        }
        if low > high {
            self.groups.push(Group { exponent: 0, bits: 0 });
            return;
        }
        (extent.low, extent.high) = (extent.low.min(low), extent.high.max(high));
        let range = start..start + codes.len();
        if high - low <= WIDEST {
            for (place, (integer, exponent)) in self.integers[range].iter_mut().zip(split) {
                *place = if integer == 0 { 0 } else { integer << (exponent - low) };
            }
            self.groups.push(Group { exponent: low, bits: high - low });
            return;
        }
        self.exponents.resize(self.integers.len(), 0);
        let (integers, exponents) = (&mut self.integers[range.clone()], &mut self.exponents[range]);
        for (i, (integer, exponent)) in split.into_iter().take(codes.len()).enumerate() {
            (integers[i], exponents[i]) = (integer, exponent);
        }
        self.groups.push(Group { exponent: low, bits: LOOSE });
    }

    pub(super) fn row(&self, i: usize) -> IntegerRow<'_> {
        let Extent { low, high, special } = self.rows[i];
        let (groups, range) = (self.k.div_ceil(GROUP), i * self.k..(i + 1) * self.k);
        IntegerRow {
            low,
            high,
            special,
            integers: &self.integers[range.clone()],
            groups: &self.groups[i * groups..(i + 1) * groups],
            exponents: if self.exponents.is_empty() { &[] } else { &self.exponents[range] },
        }
    }
}

/// A finite number as an odd integer, or zero, and a power of two.
#[inline]
fn odd_integer(numbers: &ExactRows, code: u64) -> Option<(i64, i32)> {
    let (negative, significand, exponent) = if numbers.format == Format::F64 {
        let (field, fraction) = ((code >> 52 & 0x7FF) as i32, code & ((1 << 52) - 1));
        if field == 0x7FF {
            return None;
        }
        let hidden = u64::from(field != 0) << 52;
        (code >> 63 == 1, fraction | hidden, field.max(1) - 1075)
    } else {
        match numbers.value(code) {
            Value::Finite { negative, significand, exponent } => (negative, significand, exponent),
            _ => return None,
        }
    };
    if significand == 0 {
        return Some((0, 0));
    }
    let zeros = significand.trailing_zeros();
    let integer = (significand >> zeros) as i64;
    Some((if negative { -integer } else { integer }, exponent + zeros as i32))
}

/// Adds all products of two vectors to a window whose lowest bit is worth `2^low`.
pub(super) fn dot(a: &IntegerRow<'_>, b: &IntegerRow<'_>, low: i32, sum: &mut impl Window) {
    let chunks = a.integers.chunks(GROUP).zip(b.integers.chunks(GROUP));
    for (g, (x, y)) in chunks.enumerate() {
        let (p, q) = (a.groups[g], b.groups[g]);
        if p.bits == 0 || q.bits == 0 {
            continue;
        }
        if p.bits == LOOSE || q.bits == LOOSE {
            let exponent = |row: &IntegerRow<'_>, group: Group, k: usize| {
                if group.bits == LOOSE { row.exponents[g * GROUP + k] } else { group.exponent }
            };
            for (k, (x, y)) in x.iter().zip(y).enumerate() {
                if *x != 0 && *y != 0 {
                    let place = exponent(a, p, k) + exponent(b, q, k) - low;
                    sum.add(i128::from(*x) * i128::from(*y), place as u32);
                }
            }
            continue;
        }
        let place = (p.exponent + q.exponent - low) as u32;
        // 32 products of so many bits.
        if p.bits + q.bits + 5 < 64 {
            let part: i64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
            sum.add(i128::from(part), place);
        } else {
            let part: i128 = x.iter().zip(y).map(|(x, y)| i128::from(*x) * i128::from(*y)).sum();
            sum.add(part, place);
        }
    }
}
