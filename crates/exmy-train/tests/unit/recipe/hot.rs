use exmy::slice::View;
use exmy_train::recipe::hot::{Patch, column_sums};

fn patch(text: &str) -> Patch {
    text.parse().unwrap()
}

#[test]
fn every_text_reads_back() {
    for text in [
        "s-o2-b",
        "d-o2-b",
        "s-o1-a-k48-r10",
        "d-o1-w-k5%-freeze500-normalized",
        "s-full-channel-exact-ema-dgrad-wgrad",
        "d-literal-product-block16-same",
    ] {
        assert_eq!(patch(text).to_string(), text);
    }
    assert_eq!(patch("s-o2-b-r100-raw-block16-same").to_string(), "s-o2-b");
    for wrong in ["s-o2", "o2-b", "s-o2-b-k101%", "s-o2-b-r0", "s-o2-bk5"] {
        let error = wrong.parse::<Patch>().unwrap_err().to_string();
        assert!(error.contains("s-o2-b") || error.contains("o1-a"), "{error}");
    }
}

#[test]
fn counts_are_multiples_of_16() {
    let k = |text: &str, channels| patch(text).channels(channels);
    assert_eq!([k("s-o2-b", 64), k("s-o2-b", 512), k("s-o2-b", 1024)], [16, 32, 64]);
    assert_eq!([k("s-o2-b-k1", 64), k("s-o2-b-k0", 64), k("s-o2-b-k100%", 40)], [16, 0, 40]);
}

#[test]
fn channels_are_chosen_by_score_and_stay_until_due() {
    let mut scores = vec![0.0; 64];
    (scores[5], scores[40], scores[41]) = (3.0, 2.0, 2.0);
    // Group 2 (32..48) has the larger sum, though channel 5 the largest score.
    let blocks = patch("s-o2-b-k16").choose(&scores);
    assert_eq!(blocks, (32..48).collect::<Vec<u32>>());
    let single = patch("s-o2-b-k16-channel").choose(&scores);
    let mut expected: Vec<u32> = (0..14).collect();
    expected.extend([40, 41]);
    assert_eq!(single, expected);
    let due = |text: &str, step, last| patch(text).is_due(step, last);
    assert!(due("s-o2-b", 7, None) && due("s-o2-b", 100, Some(0)));
    assert!(!due("s-o2-b", 100, Some(100)) && !due("s-o2-b", 150, Some(100)));
    assert!(!due("s-o2-b-freeze200", 200, Some(100)));
}

/// Two tokens, two outputs, two channels, by hand.
#[test]
fn scores_by_hand() {
    let (x, xq) = ([1.0, 4.0, 2.0, 0.0_f32], [0.5, 4.0, 2.5, 1.0_f32]);
    let (w, wq) = ([1.0, 1.0, 3.0, 1.0_f32], [1.0, 0.0, 3.0, 1.0_f32]);
    let of = |text: &str| {
        let (patch, operands) = (patch(text), [[&x, &xq], [&w, &wq]]);
        patch.scores([2, 2], |operand, residual| {
            let [before, after] = operands[operand].map(|data| View::new(data, 2, 2));
            let (x, minus) = if residual { (before, Some(after)) } else { (after, None) };
            column_sums(x, minus, patch.squares())
        })
    };
    assert_eq!(of("s-o2-b"), [0.5, 0.5 + 0.5]);
    assert_eq!(of("s-o2-b-normalized"), [1.0, 1.0 + 2.0]);
    // ‖RX_0‖² = 1/2, ‖Wq_0‖² = 10; ‖RX_1‖ = 1, ‖Wq_1‖ = 1, ‖Xq_1‖² = 17, ‖RW_1‖ = 1.
    assert_eq!(of("s-o2-b-product"), [libm::sqrt(5.0), 1.0 + libm::sqrt(17.0)]);
}
