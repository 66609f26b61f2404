//! One matrix in MXFP8, MXFP4 and NVFP4, what each loses, and what is stored:
//! `cargo run --example blocks`, which prints
//!
//! ```text
//! format       bits     SQNR dB  flushed to 0  largest error
//! mxfp8-e4m3   8.25        41.7             0          0.105
//! mxfp4        4.25        13.5            40          8.000
//! nvfp4        4.5         24.4            22          1.000
//! nvfp4-16x16  4.03125     18.8            70          1.000
//! mxfp4: 128 bytes of codes
//! scales of the first two rows: [130, 124, 124, 125]
//! around the outlier: [-0.0, -0.0, 32.0, -0.0]
//! ```

use exmy::prelude::*;

fn main() {
    // 4 rows of 64 numbers between -1 and 1, with one outlier in the first row.
    let (rows, cols) = (4, 64);
    let mut x: Vec<f32> = (0..rows * cols).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    x[5] = 40.0;
    let view = View::new(&x, rows, cols);

    println!("format       bits     SQNR dB  flushed to 0  largest error");
    let formats =
        [BlockFormat::MXFP8_E4M3, BlockFormat::MXFP4, BlockFormat::NVFP4, BlockFormat::NVFP4_16X16];
    for format in formats {
        // A product sums along the columns, so blocks lie along the rows.
        let tensor = BlockTensor::quantize(view, Axis::Cols, format, Rounding::TiesToEven);
        let found = tensor.statistics(view);
        println!(
            "{:<12} {:<8} {:>7.1} {:>13} {:>14.3}",
            format.to_string(),
            format.bits_per_element(),
            found.sqnr_db(),
            found.flushed,
            found.max_error
        );
    }

    // The parts: packed codes and a scale for each block of 32.
    let tensor = BlockTensor::quantize(view, Axis::Cols, BlockFormat::MXFP4, Rounding::TiesToEven);
    println!("mxfp4: {} bytes of codes", tensor.packed_codes().len());
    println!("scales of the first two rows: {:?}", &tensor.packed_scales()[..4]);
    println!("around the outlier: {:?}", &tensor.dequantize()[3..7]);
}
