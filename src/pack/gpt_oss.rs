//! How the gpt-oss checkpoints store MXFP4 tensors (github.com/openai/gpt-oss, `weights.py`).
//!
//! A tensor `[.., K]` of E2M1 codes with one E8M0 scale for 32 of them along K is two arrays of
//! bytes: `NAME_blocks` or `NAME.blocks` of shape `[.., K / 32, 16]`, element `2 i` of a block in the
//! low nibble of byte `i`, and the scales `[.., K / 32]`. In bytes, in order, that is the dense
//! stream of codes and the linear scales; what this module adds are the shapes.

use alloc::vec::Vec;

use super::PackError;

/// Codes of a block.
pub const BLOCK: usize = 32;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 16;

/// The shapes of a tensor's two arrays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shapes {
    /// Of the codes: the tensor's, the last axis replaced by blocks and [`BLOCK_BYTES`].
    pub blocks: Vec<usize>,
    /// Of the scales: the tensor's, the last axis replaced by blocks.
    pub scales: Vec<usize>,
}

/// The shapes in which a tensor of shape `tensor` is stored.
///
/// # Errors
/// If the last axis is not a multiple of [`BLOCK`], as that of a scalar is not: the format has no
/// way to say that a block is not full.
///
/// ```
/// use exmy::pack::gpt_oss;
///
/// let shapes = gpt_oss::shapes(&[4, 64])?;
/// assert_eq!((shapes.blocks, shapes.scales), (vec![4, 2, 16], vec![4, 2]));
/// assert!(gpt_oss::shapes(&[64, 40]).is_err());
/// # Ok::<(), exmy::pack::PackError>(())
/// ```
pub fn shapes(tensor: &[usize]) -> Result<Shapes, PackError> {
    let (codes, outer) = tensor.split_last().unwrap_or((&1, &[]));
    if !codes.is_multiple_of(BLOCK) {
        return Err(PackError::Blocks { container: "gpt-oss", block: BLOCK, codes: *codes });
    }
    let scales = [outer, &[codes / BLOCK]].concat();
    Ok(Shapes { blocks: [&scales[..], &[BLOCK_BYTES]].concat(), scales })
}

/// The shape of the tensor whose codes are stored in the shape `blocks`; `None` if no tensor's are,
/// or a length exceeds `usize`.
///
/// ```
/// use exmy::pack::gpt_oss;
///
/// assert_eq!(gpt_oss::tensor(&[4, 2, 16]), Some(vec![4, 64]));
/// assert_eq!(gpt_oss::tensor(&[4, 2, 32]), None); // 32 bytes are no block
/// ```
pub fn tensor(blocks: &[usize]) -> Option<Vec<usize>> {
    let [outer @ .., count, BLOCK_BYTES] = blocks else { return None };
    Some([outer, &[count.checked_mul(BLOCK)?]].concat())
}
