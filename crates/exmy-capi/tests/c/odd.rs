//! Odd arguments, in all combinations: whatever is asked for, the answer is a status, and no fault of the
//! library.

use std::ffi::{CStr, CString, c_void};
use std::mem::MaybeUninit;
use std::ptr::null;

use exmy_capi::*;

/// Calls a function that makes a handle.
fn made<T>(
    make: impl FnOnce(Option<&mut MaybeUninit<Option<Box<T>>>>) -> ExmyStatus,
) -> Option<Box<T>> {
    let mut out = MaybeUninit::new(None);
    fine(make(Some(&mut out)));
    // SAFETY: it was written before the call.
    unsafe { out.assume_init() }
}

/// Whether it is done; a failure has a sentence that is not about a fault.
#[track_caller]
fn fine(status: ExmyStatus) -> bool {
    if status == ExmyStatus::Ok {
        return true;
    }
    // SAFETY: a text of the library's.
    let message = unsafe { CStr::from_ptr(exmy_message()) }.to_str().unwrap();
    assert_ne!(status, ExmyStatus::Internal, "{message}");
    assert!(!message.is_empty());
    false
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

const FORMATS: &str = "f32 f64 bf16 tf32 e4m3 e5m2 e2m1 e3m2 e8m0 ue4m3 int8 e4m3fnuz e0m4 e1m3ieee e16m40 \
                       e15m48 e5m52 binary8p3se binary16p1ue e9m2";

#[test]
fn functions_answer_all_words() {
    let operations =
        "add mulAdd sqrt lt totalOrder roundToInt scaleB logB exp tan_pi atan2 rem nextUp clamp";
    let words = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF_FFFF, u64::MAX, 1 << 63, 0x0123_4567_89AB_CDEF];
    let mut computed = 0;
    for format in FORMATS.split(' ') {
        let names = operations.split(' ').map(|operation| format!("{format}_{operation}"));
        let more = ["to_i8", "to_ui64", "to_f32", "to_e8m0", "to_e2m1", "add_to_e3m2"];
        for name in names.chain(more.map(|operation| format!("{format}_{operation}"))) {
            for settings in
                ["round=odd", "round=sr32c,overflow=onnx", "profile=ml-dtypes,subnormals=away"]
            {
                let (name, settings) = (text(&name), text(settings));
                // SAFETY: texts that live long enough.
                let function =
                    made(|out| unsafe { exmy_function_new(name.as_ptr(), settings.as_ptr(), out) });
                for a in words.into_iter().filter(|_| function.is_some()) {
                    for b in [0, a.rotate_left(5), u64::MAX] {
                        let mut result = MaybeUninit::uninit();
                        let function = function.as_deref();
                        computed += u32::from(fine(exmy_evaluate(
                            function,
                            a,
                            b,
                            a ^ b,
                            a as u32,
                            Some(&mut result),
                            None,
                        )));
                    }
                }
            }
        }
    }
    assert!(computed > 10_000, "{computed}");
}

#[test]
fn arrays_of_all_formats_and_lengths() {
    let words: Vec<u64> = (0..600_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let random: Vec<u32> = words.iter().map(|word| *word as u32).collect();
    let (mut results, mut flags) = (vec![0_u64; 600], vec![0; 600]);
    for from in FORMATS.split(' ') {
        for to in FORMATS.split(' ') {
            for settings in
                ["", "round=sr7b,overflow=sat-finite", "profile=torch,flush=flush-input"]
            {
                let [from, to, settings] = [from, to, settings].map(text);
                // SAFETY: texts that live long enough; arrays of more bytes than are asked for.
                unsafe {
                    let converter = made(|out| {
                        exmy_converter_new(from.as_ptr(), to.as_ptr(), settings.as_ptr(), out)
                    });
                    let (x, words, out) =
                        (words.as_ptr().cast(), random.as_ptr(), results.as_mut_ptr());
                    let converter = converter.as_deref();
                    for count in [0, 1, 17, 600] {
                        assert!(fine(exmy_convert(
                            converter,
                            count,
                            x,
                            words,
                            out.cast(),
                            std::ptr::null_mut()
                        )));
                        assert!(fine(exmy_convert(
                            converter,
                            count,
                            x,
                            words,
                            out.cast(),
                            flags.as_mut_ptr()
                        )));
                        fine(exmy_fake_quantize(converter, count, x, words, out.cast()));
                        fine(exmy_convert(
                            converter,
                            count,
                            x,
                            null(),
                            out.cast(),
                            std::ptr::null_mut(),
                        ));
                    }
                }
            }
        }
    }
}

#[test]
fn matrices_of_odd_shapes() {
    let mut x: Vec<f32> = (0..1024).map(|i| (i as f32 - 500.0) * 0.37).collect();
    (x[7], x[8], x[9]) = (f32::NAN, f32::INFINITY, 1e-44);
    let mut results = vec![0.0_f32; 2048];
    let names = "mxfp4 nvfp4 nvfp4-16x16 mxint8 e4m3 e5m2@rtz bf16 f32 none rht16>nvfp4@sr8 mxfp8-e4m3@te \
                 e2m1/7x3:bf16 e2m1/row:f32 e3m0/tensor:e8m0 mxfp4@rceil  bf16>mxfp6-e2m3 \
                 e2m1/4294967295:e8m0";
    let accumulations = "exact fma:e4m3@sr4 blocked3:bf16 pairwise te-nvfp4 hopper fast amx cdna3 custom,l=3 \
                         promote2(fma:e8m13@rtz) blackwell volta+f16";
    let accumulations = accumulations.split_whitespace().map(|name| {
        let (name, output) = (text(name), text("output=e4m3,non-finite=keep"));
        // SAFETY: texts that live long enough.
        made(|out| unsafe { exmy_product_new(name.as_ptr(), output.as_ptr(), out) }).unwrap()
    });
    let accumulations: Vec<_> = accumulations.collect();
    let random = ExmyRandom { seed: 3, stream: null() };
    let mut products = 0;
    for name in names.split_whitespace() {
        let name = text(name);
        // SAFETY: texts that live long enough; arrays larger than the shapes that are possible.
        unsafe {
            let quantizer = made(|out| exmy_quantizer_new(name.as_ptr(), out)).unwrap();
            let quantizer = Some(&*quantizer);
            for (rows, cols) in
                [(0, 0), (0, 5), (5, 0), (1, 1), (3, 33), (16, 16), (32, 32), (usize::MAX, 0)]
            {
                for axis in [EXMY_AXIS_COLS, EXMY_AXIS_ROWS, 7] {
                    for random in [None, Some(&random)] {
                        let start = x.as_ptr();
                        let values = results.as_mut_ptr();
                        fine(exmy_quantize_values(
                            quantizer, start, rows, cols, 0, axis, random, values,
                        ));
                        let blocks = made(|out| {
                            exmy_quantize(quantizer, start, rows, cols, 0, axis, random, out)
                        });
                        let Some(blocks) = blocks else { continue };
                        assert!(fine(exmy_dequantize(Some(&*blocks), values)));
                        let operand = |transposed| ExmyMatrix {
                            blocks: Some(&*blocks),
                            format: None,
                            codes: null::<c_void>(),
                            rows: 0,
                            cols: 0,
                            row_stride: 0,
                            col_stride: 0,
                            transposed,
                        };
                        for product in accumulations.iter().filter(|_| rows <= 16 || cols == 0) {
                            for (a, b) in [(0, 1), (1, 0), (0, 0)] {
                                let (a, b) = (operand(a), operand(b));
                                let (a, b) = (Some(&a), Some(&b));
                                let done = exmy_gemm(
                                    Some(product),
                                    a,
                                    b,
                                    1.5,
                                    0.0,
                                    random,
                                    values,
                                    0,
                                    None,
                                );
                                products += u32::from(fine(done));
                                fine(exmy_gemm_codes(
                                    Some(product),
                                    a,
                                    b,
                                    1.0,
                                    random,
                                    values.cast(),
                                ));
                            }
                        }
                    }
                }
            }
            fine(exmy_quantize(quantizer, x.as_ptr(), usize::MAX, 2, 3, 0, None, None));
        }
    }
    assert!(products > 1000, "{products}");
}

#[test]
fn units_of_all_kinds() {
    let words: Vec<u64> = (0..512_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let mut d = vec![0_u64; 512];
    let units = "hopper:e4m3 hopper:tf32 hopper-mma:e4m3,e5m2 volta:f16+f16 blackwell:nvfp4 cdna3:bf16 \
                 cdna2:f32 blackwell:mxfp8-e4m3,mxfp4 amx:bf16 fast:e4m3 fast:mxfp4 cdna1:f16 ampere:f64 \
                 custom,l=5,f=9:e5m3 custom,align=exact:e4m3 custom,order=groups,l=64,f=35:nvfp4 \
                 hopper,promote=3:e4m3 custom,order=tree,l=4:f16+f32 \
                 custom,l=3,overflow=wrap:int8b-6+int20b-18 custom,l=3,out=e5m2@sr4:e4m3 \
                 custom,out=int30b-20@sr8:e5m2 custom,order=quarters,l=1,out=e5m2@sr4:e4m3";
    let mut dots = 0;
    for name in units.split_whitespace() {
        let name = text(name);
        // SAFETY: texts that live long enough; arrays larger than what is asked for.
        unsafe {
            let Some(unit) = made(|out| exmy_unit_new(name.as_ptr(), out)) else { continue };
            let unit = Some(&*unit);
            let all: *const c_void = words.as_ptr().cast();
            fine(exmy_unit_words(unit, usize::MAX, Some(&mut MaybeUninit::uninit())));
            for k in [0, 1, 2, 16, 31, 64] {
                for scales in [null(), all] {
                    let mut result = MaybeUninit::uninit();
                    let dot = exmy_unit_dot(
                        unit,
                        k,
                        all,
                        all,
                        scales,
                        scales,
                        u64::MAX,
                        Some(&mut result),
                    );
                    dots += u32::from(fine(dot));
                    for random in [null(), words.as_ptr().cast()] {
                        fine(exmy_unit_dot_random(
                            unit,
                            k,
                            all,
                            all,
                            scales,
                            scales,
                            0,
                            random,
                            Some(&mut result),
                        ));
                        let out = d.as_mut_ptr().cast();
                        for m in [0, 3, usize::MAX] {
                            fine(exmy_unit_multiply_random(
                                unit, m, 2, k, all, all, scales, scales, all, random, out,
                            ));
                        }
                        let text = std::ptr::null_mut();
                        fine(exmy_unit_explain_random(
                            unit, k, all, all, scales, scales, 0, random, text, 0, None,
                        ));
                    }
                    let (m, n) = (3, 2);
                    let out = d.as_mut_ptr().cast();
                    fine(exmy_unit_multiply(unit, m, n, k, all, all, scales, scales, all, out));
                    fine(exmy_unit_multiply(unit, 0, n, k, all, all, scales, scales, null(), out));
                    fine(exmy_unit_multiply(
                        unit,
                        usize::MAX,
                        usize::MAX,
                        k,
                        all,
                        all,
                        scales,
                        scales,
                        null(),
                        out,
                    ));
                    let mut length = MaybeUninit::uninit();
                    let text = std::ptr::null_mut();
                    fine(exmy_unit_explain(
                        unit,
                        k,
                        all,
                        all,
                        scales,
                        scales,
                        0,
                        text,
                        0,
                        Some(&mut length),
                    ));
                }
            }
        }
    }
    assert!(dots > 100, "{dots}");
}

/// A unit described in a file: that of the page's table for Hopper, of which 1 + 2^-14 keeps 1.
#[test]
fn a_unit_comes_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unit.toml");
    std::fs::write(&path, "l = 32\nf = 13\nout = \"e8m13@rtz\"\na = \"e4m3fn\"\n").unwrap();
    let name = text(path.to_str().unwrap());
    let codes = [0x38_u8, 0x04];
    let all: *const c_void = codes.as_ptr().cast();
    // SAFETY: texts that live long enough; arrays as long as what is asked for.
    unsafe {
        let unit = made(|out| exmy_unit_new(name.as_ptr(), out)).unwrap();
        let mut sum = MaybeUninit::uninit();
        let unit = Some(&*unit);
        assert!(fine(exmy_unit_dot(unit, 2, all, all, null(), null(), 0, Some(&mut sum))));
        assert_eq!(sum.assume_init(), u64::from(1.0_f32.to_bits()));
        assert!(made(|out| exmy_product_new(name.as_ptr(), null(), out)).is_some());
        let missing = text("nowhere.toml");
        assert!(made(|out| exmy_unit_new(missing.as_ptr(), out)).is_none());
        let message = CStr::from_ptr(exmy_message()).to_str().unwrap();
        assert!(message.contains("cannot open nowhere.toml"), "{message}");
    }
}
