//! Memory as the trait sees it: numbers, tokens, and a number that is not known yet; and how they become
//! parameters of kernels.

use exmy_train::nn::device::{Matrix, Slice, SliceMut};

use super::Cuda;
use crate::launch::Launch;
use crate::{Buffer, Device, Result};

/// Numbers on the device. There are none in memory of length 0, and none where there was not enough memory.
#[derive(Debug, Default)]
pub struct Memory {
    pub(super) buffer: Option<Buffer<f32>>,
}

impl From<Buffer<f32>> for Memory {
    fn from(buffer: Buffer<f32>) -> Self {
        Self { buffer: Some(buffer) }
    }
}

/// A number on the device; `None` if it could not be formed.
#[derive(Debug)]
pub struct Scalar(pub(super) Option<Buffer<f64>>);

/// Tokens in their order, and sorted: positions by token and then by position, and where each token's begin.
/// The gradient of a table is summed token by token from them.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Tokens, positions, beginnings: `len`, `len` and `distinct + 1` of them.
    buffer: Option<Buffer<u32>>,
    len: usize,
    distinct: usize,
    /// The largest token.
    most: u32,
}

impl Tokens {
    /// Takes the sizes of a list, whether or not the device then takes the words, which are returned: what
    /// follows a failure does nothing, but its shapes still fit.
    pub(super) fn arrange(&mut self, tokens: &[u32]) -> Vec<u32> {
        let len = tokens.len();
        let mut order: Vec<u64> =
            tokens.iter().zip(0..).map(|(&token, at)| u64::from(token) << 32 | at).collect();
        order.sort_unstable();
        let mut all = Vec::with_capacity(3 * len + 1);
        all.extend_from_slice(tokens);
        all.extend(order.iter().map(|&word| word as u32));
        let token = |at: usize| order[at] >> 32;
        all.extend(
            (0..len).filter(|&at| at == 0 || token(at) != token(at - 1)).map(|at| at as u32),
        );
        let distinct = all.len() - 2 * len;
        // One size for a batch of one size, whatever its tokens.
        all.resize(3 * len + 1, len as u32);
        self.most = order.last().map_or(0, |word| (word >> 32) as u32);
        (self.len, self.distinct) = (len, distinct);
        all
    }

    /// Puts arranged words on the device.
    pub(super) fn upload(&mut self, device: &Device, words: &[u32]) -> Result<()> {
        match &mut self.buffer {
            Some(buffer) if buffer.len() == words.len() => buffer.write(words),
            buffer => {
                *buffer = Some(device.upload(words)?);
                Ok(())
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many different ones there are.
    pub(super) fn distinct(&self) -> usize {
        self.distinct
    }

    /// Panics as the CPU does if a token is not in the vocabulary.
    #[track_caller]
    pub(super) fn check(&self, what: &str, vocabulary: usize) {
        assert!(
            self.is_empty() || (self.most as usize) < vocabulary,
            "{what} {} is outside the vocabulary of {vocabulary}",
            self.most
        );
    }
}

/// Parameters that are parts of the trait's memory.
pub(super) trait Parts<'a>: Sized {
    /// A range that is read; a null pointer if it is empty.
    fn slice(self, slice: Slice<'_, Cuda>) -> Self;
    /// A range that may be absent.
    fn maybe(self, slice: Option<Slice<'_, Cuda>>) -> Self;
    /// A range that is written.
    fn slice_mut(self, slice: &mut SliceMut<'_, Cuda>) -> Self;
    /// A matrix that is read, and how far apart its rows begin.
    fn matrix(self, matrix: Matrix<'_, Cuda>) -> Self;
    /// Tokens in their order.
    fn tokens(self, tokens: &Tokens) -> Self;
    /// Their positions, sorted, and where each token's begin.
    fn order(self, tokens: &Tokens) -> Self;
}

impl<'a> Parts<'a> for Launch<'a> {
    fn slice(self, slice: Slice<'_, Cuda>) -> Self {
        match &slice.memory().buffer {
            Some(buffer) if !slice.is_empty() => self.read_at(buffer, slice.start()),
            _ => self.read_if::<f32>(None),
        }
    }

    fn maybe(self, slice: Option<Slice<'_, Cuda>>) -> Self {
        match slice {
            Some(slice) => self.slice(slice),
            None => self.read_if::<f32>(None),
        }
    }

    fn slice_mut(self, slice: &mut SliceMut<'_, Cuda>) -> Self {
        self.slice(slice.read())
    }

    fn matrix(self, matrix: Matrix<'_, Cuda>) -> Self {
        self.slice(matrix.data()).value(matrix.stride() as u64)
    }

    fn tokens(self, tokens: &Tokens) -> Self {
        self.read_if(tokens.buffer.as_ref())
    }

    fn order(self, tokens: &Tokens) -> Self {
        match &tokens.buffer {
            Some(buffer) => self.read_at(buffer, tokens.len).read_at(buffer, 2 * tokens.len),
            None => self.read_if::<u32>(None).read_if::<u32>(None),
        }
    }
}
