//! Matrix products on the device, in the orders of summation of the library. They are the twins of
//! [`gemm::fast::multiply`](exmy::gemm::fast::multiply) and [`gemm::f32::matmul`](exmy::gemm::f32::matmul),
//! and what Hopper's tensor cores compute, as [`gemm`](fn@exmy::gemm) models it under `hopper`.
//!
//! The tile of a block of threads is chosen by the product's size; no bit depends on it.

#![allow(unsafe_code)]

use exmy::gemm::fast::Scaling;
use exmy::minifloat::Bf16;

use crate::backend::Boxes;
use crate::launch::{Launch, Plain};
use crate::module::{F32, FAST_BF16, FAST_F32, HOPPER, Module};
use crate::{Buffer, Element, Error, Grid, Result, View, ViewMut, pack};

/// In which order a product adds, and in what precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Two chains of fused multiply-adds for each 32 positions, in binary32: [`exmy::gemm::fast`].
    Fast,
    /// One chain for each 256 positions, in binary32: [`exmy::gemm::f32`]. Of binary32 operands; alpha is 1,
    /// beta 0 or 1, and there are no scales.
    F32,
    /// One instruction of Hopper's tensor cores after another, 16 positions of bfloat16 operands each, 25
    /// fraction bits: the library's model `hopper:bf16`. Compute capability 9.0.
    HopperBf16,
    /// The same of E4M3 codes, 32 positions each, 13 fraction bits: the library's model `hopper:e4m3`.
    /// Compute capability 9.0.
    HopperE4m3,
}

/// An operand of a product: a matrix in a buffer, as it lies there or transposed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Matrix<'a> {
    /// Numbers, or images, in binary32.
    F32(View<'a, f32>, bool),
    /// Images in bfloat16.
    Bf16(View<'a, Bf16>, bool),
    /// Codes of E4M3.
    E4m3(View<'a, u8>, bool),
}

impl<'a> From<View<'a, f32>> for Matrix<'a> {
    fn from(view: View<'a, f32>) -> Self {
        Self::F32(view, false)
    }
}

impl<'a> From<View<'a, Bf16>> for Matrix<'a> {
    fn from(view: View<'a, Bf16>) -> Self {
        Self::Bf16(view, false)
    }
}

impl<'a> From<View<'a, u8>> for Matrix<'a> {
    fn from(view: View<'a, u8>) -> Self {
        Self::E4m3(view, false)
    }
}

impl Matrix<'_> {
    /// The transpose; nothing moves.
    #[must_use]
    pub const fn t(self) -> Self {
        match self {
            Self::F32(view, turned) => Self::F32(view, !turned),
            Self::Bf16(view, turned) => Self::Bf16(view, !turned),
            Self::E4m3(view, turned) => Self::E4m3(view, !turned),
        }
    }

    /// Rows and columns.
    pub const fn shape(&self) -> (usize, usize) {
        let ((rows, cols), turned) = match self {
            Self::F32(view, turned) => (view.shape(), *turned),
            Self::Bf16(view, turned) => (view.shape(), *turned),
            Self::E4m3(view, turned) => (view.shape(), *turned),
        };
        if turned { (cols, rows) } else { (rows, cols) }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::F32(..) => "f32",
            Self::Bf16(..) => "bf16",
            Self::E4m3(..) => "e4m3 codes",
        }
    }
}

/// Scales of whole operands, each one number on the device; absent ones are left out. A place says which
/// number of a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scales<'a> {
    /// Of the left operand.
    pub left: Option<(&'a Buffer<f32>, usize)>,
    /// Of the right one.
    pub right: Option<(&'a Buffer<f32>, usize)>,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Gemm {
    m: u32,
    n: u32,
    k: u32,
    accumulate: u32,
    a_stride: u64,
    b_stride: u64,
    c_stride: u64,
    alpha: f32,
    beta: f32,
    rounds: u32,
    gap: u32,
}

// SAFETY: four fields of 32 bits, three of 64 and four of 32, without a gap.
unsafe impl Plain for Gemm {}

/// `c = alpha a b + beta c` in an order; with `factor = (alpha * left) * right` as in [`exmy::gemm::fast`]:
/// `c = factor * sum`, and `+ beta * c` unless beta is 0.
///
/// ```no_run
/// use exmy::gemm::fast::Scaling;
/// use exmy_cuda::{Device, Matrix, Order, Scales, View, ViewMut, multiply};
///
/// let device = Device::new(0)?;
/// let x = device.upload(&[16_777_216.0_f32, 1.0, 0.0, 1.0])?;
/// let y = device.upload(&[1.0_f32; 4])?;
/// let (a, b) = (Matrix::from(View::new(&x, 1, 4)?), Matrix::from(View::new(&y, 4, 1)?));
/// let mut c = device.zeros(1)?;
/// multiply(Order::Fast, a, b, ViewMut::new(&mut c, 1, 1)?, Scaling::OVERWRITE, Scales::default())?;
/// assert_eq!(c.to_vec()?, [16_777_218.0]); // 2^24 of the even chain, 2 of the odd one
/// # Ok::<(), exmy_cuda::Error>(())
/// ```
///
/// # Errors
/// If the shapes do not fit each other, the order does not take such operands or factors, the GPU does not
/// have the order, memory is full, or the device fails.
pub fn multiply(
    order: Order,
    a: Matrix<'_>,
    b: Matrix<'_>,
    c: ViewMut<'_, f32>,
    with: Scaling,
    scales: Scales<'_>,
) -> Result<()> {
    multiply_to(order, a, b, c, with, scales, false)
}

/// The same; with `rounds` the results of all orders but [`Order::F32`] are rounded to bfloat16 at last, to
/// nearest even, NaN to the one.
pub(crate) fn multiply_to(
    order: Order,
    a: Matrix<'_>,
    b: Matrix<'_>,
    c: ViewMut<'_, f32>,
    with: Scaling,
    scales: Scales<'_>,
    rounds: bool,
) -> Result<()> {
    let ((m, k), (inner, n)) = (a.shape(), b.shape());
    if k != inner || c.shape() != (m, n) {
        let why =
            format!("({m} x {k}) times ({inner} x {n}) into {:?} do not fit each other", c.shape());
        return Err(Error::unfit("multiply", why));
    }
    for (buffer, at) in [scales.left, scales.right].into_iter().flatten() {
        if at >= buffer.len() {
            let why = format!("scale {at} of {} numbers", buffer.len());
            return Err(Error::unfit("multiply", why));
        }
    }
    if m == 0 || n == 0 {
        return Ok(());
    }
    let product = Product { m, n, k, with, scales, rounds };
    match (order, a, b) {
        (Order::Fast, Matrix::F32(a, s), Matrix::F32(b, t)) => {
            product.run(&FAST_F32, "fast_f32", (a, s), (b, t), c)
        }
        (Order::Fast, Matrix::Bf16(a, s), Matrix::Bf16(b, t)) => {
            product.run(&FAST_BF16, "fast_bf16", (a, s), (b, t), c)
        }
        (Order::F32, Matrix::F32(a, s), Matrix::F32(b, t)) => {
            let plain = with.alpha == 1.0 && (with.beta == 0.0 || with.beta == 1.0);
            if !plain || scales.left.is_some() || scales.right.is_some() {
                let why = "the order f32 overwrites or adds, without factors";
                return Err(Error::unfit("multiply", why));
            }
            product.run(&F32, "f32", (a, s), (b, t), c)
        }
        (Order::HopperBf16, Matrix::Bf16(a, s), Matrix::Bf16(b, t)) => {
            product.on_tensor_cores(["hopper_bf16_wide", "hopper_bf16_narrow"], (a, s), (b, t), c)
        }
        (Order::HopperE4m3, Matrix::E4m3(a, s), Matrix::E4m3(b, t)) => {
            product.on_tensor_cores(["hopper_e4m3_wide", "hopper_e4m3_narrow"], (a, s), (b, t), c)
        }
        (order, a, b) => {
            let why = format!("{order:?} of {} and {} is not there", a.name(), b.name());
            Err(Error::unfit("multiply", why))
        }
    }
}

struct Product<'a> {
    m: usize,
    n: usize,
    k: usize,
    with: Scaling,
    scales: Scales<'a>,
    /// Whether results are rounded to bfloat16, to nearest even, at last.
    rounds: bool,
}

/// An operand as kernels take it: every row begins at a multiple of 16 bytes.
struct Ready<'a, T: Element> {
    own: Option<Buffer<T>>,
    view: View<'a, T>,
}

impl<'a, T: Element> Ready<'a, T> {
    /// `turn`: transposed on the way.
    fn new(view: View<'a, T>, turn: bool) -> Result<Self> {
        let wide = 16 / size_of::<T>();
        let aligned = view.first.is_multiple_of(wide) && view.stride.is_multiple_of(wide);
        if aligned && !turn {
            return Ok(Self { own: None, view });
        }
        let (rows, cols) = if turn { (view.cols, view.rows) } else { view.shape() };
        let stride = cols.next_multiple_of(wide);
        let mut own = Buffer::uninit(view.buffer.device(), rows * stride)?;
        if turn {
            pack::transpose_into(view, ViewMut::with_stride(&mut own, 0, rows, cols, stride)?)?;
        } else {
            pack::copy_matrix(view, &mut ViewMut::with_stride(&mut own, 0, rows, cols, stride)?)?;
        }
        let view = View { rows, cols, stride, ..view };
        Ok(Self { own: Some(own), view })
    }

    fn buffer(&self) -> (&Buffer<T>, usize) {
        match &self.own {
            Some(own) => (own, 0),
            None => (self.view.buffer, self.view.first),
        }
    }
}

/// A tile of a block of threads, and what share of the largest one's speed it reaches.
struct Tile {
    name: &'static str,
    rows: usize,
    cols: usize,
    speed: f64,
}

const TILES: [Tile; 3] = [
    Tile { name: "large", rows: 128, cols: 128, speed: 1.0 },
    Tile { name: "tall", rows: 128, cols: 64, speed: 0.8 },
    Tile { name: "small", rows: 64, cols: 64, speed: 0.7 },
];
/// From how many rows on the right operand is transposed first, where its positions are adjacent.
const TURNING_ROWS: usize = 2048;
/// Threads of a block, whatever its tile.
const THREADS: u32 = 256;

impl Product<'_> {
    /// How many tiles there are of this shape.
    fn count(&self, tile: &Tile) -> usize {
        self.m.div_ceil(tile.rows) * self.n.div_ceil(tile.cols)
    }

    /// The tile that ends first. Large ones are shared out evenly; of the others processors make rounds.
    fn tile(&self, processors: usize) -> &'static Tile {
        let time = |tile: &Tile| {
            let rounds = self.count(tile) as f64 / processors as f64;
            let rounds = if tile.name == "large" { rounds.max(1.0) } else { rounds.ceil() };
            rounds * (tile.rows * tile.cols) as f64 / tile.speed
        };
        let (large, tall, small) = (&TILES[0], &TILES[1], &TILES[2]);
        let best = if time(tall) < time(large) { tall } else { large };
        if time(small) < time(best) { small } else { best }
    }

    /// Whether the right operand, whose positions are adjacent, is transposed first. The kernel for what
    /// results is a tenth faster, and that many rows pay for the transpose.
    fn turns<T: Element>(&self) -> bool {
        /// Bytes of memory that are taken for it.
        const MOST: usize = 64 << 20;
        self.m >= TURNING_ROWS && self.n * self.k * size_of::<T>() <= MOST
    }

    fn gemm(&self, c: &ViewMut<'_, f32>, a_stride: usize, b_stride: usize) -> Gemm {
        Gemm {
            m: self.m as u32,
            n: self.n as u32,
            k: self.k as u32,
            accumulate: u32::from(self.with.beta != 0.0),
            a_stride: a_stride as u64,
            b_stride: b_stride as u64,
            c_stride: c.stride as u64,
            alpha: self.with.alpha,
            beta: self.with.beta,
            rounds: self.rounds.into(),
            gap: 0,
        }
    }

    fn run<T: Element>(
        &self,
        module: &'static Module,
        kind: &'static str,
        (a, a_turned): (View<'_, T>, bool),
        (b, b_turned): (View<'_, T>, bool),
        c: ViewMut<'_, f32>,
    ) -> Result<()> {
        let device = c.buffer.device().clone();
        let processors = device.properties().processors as usize;
        let tile = self.tile(processors);
        // There is no kernel for positions that are adjacent in the right operand alone.
        let turns = b_turned && (a_turned || self.turns::<T>());
        let (a_adjacent, b_adjacent) = (!a_turned, b_turned && !turns);
        let (a, b) = (Ready::new(a, false)?, Ready::new(b, turns)?);
        let majors = match (a_adjacent, b_adjacent) {
            (true, true) => "nt",
            (true, false) => "nn",
            (false, _) => "tn",
        };
        let wanted = format!("{kind}_{majors}_{}", tile.name);
        let Some(name) = module.kernels.iter().find(|name| **name == wanted) else {
            unreachable!("{} has {wanted}", module.name)
        };
        let count = self.count(tile);
        let blocks = if tile.name == "large" { count.min(processors) } else { count };
        // The sums of tiles that one block begins and the next ends, and which are ready.
        let begun = if blocks < count && !count.is_multiple_of(blocks) {
            let sums = Buffer::<f32>::uninit(&device, blocks * tile.rows * tile.cols)?;
            Some((sums, device.zeros::<u32>(blocks)?))
        } else {
            None
        };
        // 32 positions of both operands, in rows that are four numbers longer.
        let stage = 32 * (tile.rows + 4 + tile.cols + 4);
        let stages = if size_of::<T>() == 4 { 3 } else { 2 };
        let grid = Grid::new(blocks as u32, THREADS).with_shared((4 * stages * stage) as u32);
        let gemm = self.gemm(&c, a.view.stride, b.view.stride);
        let ((x, first), (y, second)) = (a.buffer(), b.buffer());
        let launch = Launch::new(&device, module, name).read_at(x, first).read_at(y, second);
        let launch = launch.write_at(c.buffer, c.first);
        let launch = self.scaled(launch).read_if(begun.as_ref().map(|(sums, _)| sums));
        let launch = launch.read_if(begun.as_ref().map(|(_, ready)| ready));
        // SAFETY: the views lie in their buffers and fit each other. The kernel leaves out what is outside of
        // them, and rows begin where it takes 16 bytes at a time. A block leaves the sums of one tile.
        unsafe { launch.value(gemm).run(grid) }
    }

    /// By Hopper's tensor cores: positions are made adjacent in both operands.
    fn on_tensor_cores<T: Element>(
        &self,
        [wide, narrow]: [&'static str; 2],
        (a, a_turned): (View<'_, T>, bool),
        (b, b_turned): (View<'_, T>, bool),
        c: ViewMut<'_, f32>,
    ) -> Result<()> {
        let device = c.buffer.device().clone();
        let found = device.properties().capability;
        if found != (9, 0) {
            return Err(Error::Architecture {
                what: "products by Hopper's tensor cores",
                device: device.properties().name.clone(),
                found,
                needed: "compute capability 9.0 alone has them; the order fast runs everywhere",
            });
        }
        if self.k == 0 {
            // A matrix of nothing has no place that could be described: the sums are zero, as in any order.
            let none = device.zeros::<f32>(4)?;
            let none = View::with_stride(&none, 0, 0, 0, 4)?;
            return self.run(&FAST_F32, "fast_f32", (none, false), (none, true), c);
        }
        let (a, b) = (Ready::new(a, a_turned)?, Ready::new(b, !b_turned)?);
        let tiles = |width: usize| self.m.div_ceil(128) * self.n.div_ceil(width);
        let processors = device.properties().processors as usize;
        // Rounds of the wide tile take twice as long.
        let wide_first = 2 * tiles(256).div_ceil(processors) <= tiles(128).div_ceil(processors);
        let (name, width) = if wide_first { (wide, 256) } else { (narrow, 128) };
        let size = size_of::<T>();
        let map = |operand: &Ready<'_, T>, tall: usize| {
            let (buffer, first) = operand.buffer();
            device.backend().tensor_map(Boxes {
                address: buffer.address() + (first * size) as u64,
                size,
                rows: operand.view.rows,
                cols: operand.view.cols,
                pitch: operand.view.stride * size,
                tall: tall as u32,
            })
        };
        let (left, right) = (map(&a, 128)?, map(&b, width)?);
        let shared = 4 * (128 + width) * 128;
        let grid = Grid::new(tiles(width) as u32, 384).with_shared(shared as u32);
        let gemm = self.gemm(&c, a.view.stride, b.view.stride);
        let launch = Launch::new(&device, &HOPPER, name).value(left).value(right);
        let launch = launch.after(a.buffer().0).after(b.buffer().0).write_at(c.buffer, c.first);
        let launch = self.scaled(launch);
        // SAFETY: the maps describe views that lie in their buffers, and the kernel leaves out what is
        // outside.
        unsafe { launch.value(gemm).run(grid) }
    }

    /// The places of the operands' scales.
    fn scaled<'a>(&self, launch: Launch<'a>) -> Launch<'a> {
        [self.scales.left, self.scales.right].into_iter().fold(
            launch,
            |launch, scale| match scale {
                Some((buffer, at)) => launch.read_at(buffer, at),
                None => launch.read_if::<f32>(None),
            },
        )
    }
}
