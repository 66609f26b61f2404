use exmy_train::nn::site::{Operand, Site};
use exmy_train::recipe::state::{Hot, RecipeState, ScaleWindow};

/// 448 / amax of 100, 1000, 0, infinity and NaN: the powers 4, 1/4, ... by hand.
#[test]
fn a_window_of_one_scales_in_time() {
    let mut window = ScaleWindow::default();
    let mut at = |step, amax| window.scale(Some(step), || amax, 448.0, 1);
    assert_eq!(at(0, 100.0), 0.25);
    // From now on the scale is that of the step before.
    assert_eq!(at(1, 1000.0), 0.25);
    assert_eq!(at(2, 0.0), 4.0);
    assert_eq!(at(3, 448.0), 4.0);
    assert_eq!(at(4, f32::INFINITY), 1.0);
    assert_eq!(at(5, 896.0), 1.0);
    assert_eq!(at(6, f32::NAN), 2.0);
    assert_eq!(at(7, f32::INFINITY), 2.0);
    assert_eq!(at(8, 1.0), 0.5);
    assert_eq!(at(8, 5000.0), 0.5);
}

#[test]
fn a_window_of_three_warms_up_and_forgets() {
    let mut window = ScaleWindow::default();
    let scales: Vec<f32> = [448.0, 100.0, 3000.0, 1.0, 1.0, 1.0, 1.0]
        .into_iter()
        .enumerate()
        .map(|(step, amax)| window.scale(Some(step as u64), || amax, 448.0, 3))
        .collect();
    // In time for three steps; then 3000 rules until it has left.
    assert_eq!(scales, [1.0, 0.25, 8.0, 8.0, 8.0, 8.0, 1.0 / 256.0]);
    assert_eq!(window.scale(None, || panic!("the window is full"), 448.0, 3), 1.0 / 256.0);
}

#[test]
fn memory_reads_back_bit_for_bit() {
    let mut memory = RecipeState::default();
    assert_eq!(memory.to_text(), "");
    let site: Site = "layers.3.gate_proj".parse().unwrap();
    let window = ScaleWindow { step: 9, amax: vec![0.1, f32::MAX], scale: 0.25 };
    memory.windows.insert((site, Operand::Input), window);
    let hot = Hot { step: 100, channels: vec![0, 17], average: vec![0.1, 1e-300] };
    memory.hot.insert("lm_head".parse().unwrap(), hot);
    let text = memory.to_text();
    assert_eq!(RecipeState::from_text(&text), Ok(memory));
    assert!(RecipeState::from_text("hot lm_head 3 2 1").is_err());
    assert!(RecipeState::from_text("cold lm_head").unwrap_err().contains("cold"));

    // Every NaN is the positive quiet one, whichever the machine made.
    let mut broken = RecipeState::default();
    let made = [0xFFC0_0000, 0x7F80_0001, 0x7FFF_FFFF, 0x7F80_0000].map(f32::from_bits);
    let window = ScaleWindow { step: 2, amax: made.into(), scale: 0.5 };
    broken.windows.insert((site, Operand::Input), window);
    let average = vec![f64::from_bits(0xFFF8_0000_0000_0001), f64::NEG_INFINITY];
    broken.hot.insert(site, Hot { step: 2, channels: vec![4], average });
    let text = "window layers.3.gate_proj input 2 3f000000 7fc00000 7fc00000 7fc00000 7f800000\n\
                hot layers.3.gate_proj 2 1 4 7ff8000000000000 fff0000000000000\n";
    assert_eq!(broken.to_text(), text);
    assert_eq!(RecipeState::from_text(text).unwrap().to_text(), text);
}
