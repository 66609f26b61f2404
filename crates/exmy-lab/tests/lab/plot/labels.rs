use exmy::random::{Philox, Stream};
use exmy_lab::plot::labels::{broken, distinguish, fits, shorten, shorten_note, spread, wrap};
use exmy_lab::plot::number::short;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

#[test]
fn labels_apart_stay_and_labels_together_share_the_move() {
    let spread = |wanted: &[i64]| spread(wanted, &vec![1; wanted.len()], 100, 0, 1000);
    assert_eq!(spread(&[100, 500, 300]), [100, 500, 300]);
    // Two at 300: 250 and 350; with a third at 320 the mean of (300, 200, 120) is 206.
    assert_eq!(spread(&[300, 300]), [250, 350]);
    assert_eq!(spread(&[320, 300, 300]), [406, 206, 306]);
    assert_eq!(spread(&[0, 0, 0]), [0, 100, 200]);
    assert_eq!(spread(&[990, 1000]), [900, 1000]);
    assert!(spread(&[]).is_empty());
}

#[test]
fn labels_of_several_lines_take_their_room() {
    // The second needs two lines above the third, and the last one room for three below its first.
    assert_eq!(spread(&[0, 300, 300], &[1, 2, 1], 100, 0, 1000), [0, 200, 400]);
    assert_eq!(spread(&[1000], &[3], 100, 0, 1000), [800]);
    assert_eq!(spread(&[1000, 900], &[1, 3], 100, 0, 1000), [1000, 700]);
}

#[test]
fn labels_never_touch_and_stay_inside() {
    let random = Philox::new(1, Stream::new("labels"));
    for case in 0..500_u64 {
        let n = 1 + random.word(case) as usize % 12;
        let wanted: Vec<i64> =
            (0..n as u64).map(|i| i64::from(random.word(1000 + case * 16 + i) % 3000)).collect();
        let placed = spread(&wanted, &vec![1; n], 230, 0, 3000);
        for (i, &a) in placed.iter().enumerate() {
            assert!((0..=3000).contains(&a));
            for (j, &b) in placed.iter().enumerate().take(i) {
                assert!((a - b).abs() >= 230, "{wanted:?} -> {placed:?}");
                assert!(wanted[i] == wanted[j] || (wanted[i] > wanted[j]) == (a > b));
            }
        }
    }
    assert!(fits(12, 230, 0, 2530) && !fits(12, 230, 0, 2529));
}

#[test]
fn text_is_cut_and_wrapped_to_its_room() {
    assert_eq!(shorten("f32", 10, 100.0), "f32");
    // 'a' is 6.3 wide and the ellipsis 10.5: three letters fit beside it in 30.
    assert_eq!(shorten("aaaaaaaa", 10, 30.0), "aaa…");
    assert_eq!(wrap("aa aa  aa", 10, 30.0), ["aa aa", "aa"]);
    assert_eq!(wrap("aa aa aa aa", 10, 47.0), ["aa aa", "aa aa"]);
    assert!(wrap(" ", 10, 30.0).is_empty());
    // Digits are as wide as these letters. A number is not divided, whatever stands before and behind it.
    assert_eq!(wrap("aa 1 234 567, bb", 10, 70.0), ["aa", "1 234 567,", "bb"]);
    assert_eq!(wrap("aa 12 aa 1234 aa", 10, 40.0), ["aa 12", "aa", "1234", "aa"]);
}

#[test]
fn names_are_broken_at_their_joints() {
    let broken = |text: &str, room: f64| broken(text, 10, room).unwrap_or_default();
    assert_eq!(broken("BF16 for the last third", 100.0), ["BF16 for the last ", "third"]);
    assert_eq!(broken("mx+bias=low+clip", 70.0), ["mx+", "bias=low+", "clip"]);
    assert_eq!(broken("bf16_act_all", 60.0), ["bf16_act_", "all"]);
    assert_eq!(broken("a-3 b,2+5_6 -7", 45.0), ["a-3 ", "b,2+5_6 ", "-7"]);
    assert_eq!(broken("a", 10.0), ["a"]);
    assert_eq!(broken("", 10.0), [""]);
    assert!(broken("aaaaaaaa bb", 30.0).is_empty());
}

#[test]
fn notes_keep_their_numbers() {
    let note = |text: &str, room: f64| shorten_note(text, 10, room);
    assert_eq!(note("diverged at 1234", 120.0), "diverged at 1234");
    assert_eq!(note("diverged at 1234", 80.0), "1234");
    assert_eq!(note("gap of -0.25 nats in the end", 80.0), "-0.25 nats in");
    assert_eq!(note("12345", 20.0), "1…");
    assert_eq!(note(&format!("{:.3}", 1e40), 90.0), short(1e40));
    assert_eq!(note("no values at all", 60.0), "no value…");
}

/// Names cut to so many characters.
fn shortened(names: &[&str], most: usize) -> Vec<String> {
    let texts = distinguish(names, |_, text| text.chars().count() <= most, |_, _| false);
    for (i, a) in texts.iter().enumerate() {
        assert!(a.chars().count() <= most || most < 8, "{a}");
        for (j, b) in texts.iter().enumerate().take(i) {
            assert_eq!(names[i] == names[j], a == b, "{names:?} -> {texts:?}");
        }
    }
    texts
}

#[test]
fn long_names_lose_what_they_share() {
    let names = ["f32", "e7m7+bias=low+clip=outer", "e7m7+bias=low+clip=inner+rne"];
    assert_eq!(shortened(&names, 40), names);
    assert_eq!(shortened(&names, 20), ["f32", "…clip=outer", "…clip=inner+rne"]);
    let names = ["e7m7+bias=low+clip", "e8m6+bias=low+clip"];
    assert_eq!(shortened(&names, 15), ["e7m7+…", "e8m6+…"]);
    let names = ["all bf16_act of layers", "all bf16_act_all of layers"];
    assert_eq!(shortened(&names, 14), ["…act …", "…act_all …"]);
    // One alone shares nothing.
    assert_eq!(shortened(&["f32", "weight decay 0.01"], 12), ["f32", "weigh…y 0.01"]);
}

#[test]
fn names_that_differ_in_their_middle_show_it() {
    let [a, b] = ["x", "y"].map(|middle| format!("{0}{middle}{0}", "a".repeat(30)));
    let texts = shortened(&[&a, &b, &a], 12);
    assert!(texts[0].contains('x') && texts[1].contains('y') && texts[2] == texts[0], "{texts:?}");
    // No room for anything: numbers.
    assert_eq!(shortened(&["aaaa", "aaab", "aaac"], 1), ["…#2", "…#3", "…"]);
    // A text that another name has already.
    let taken = |_: usize, text: &str| text == "ab…ef";
    assert_ne!(distinguish(&["abcdef"], |_, text| text.len() <= 7, taken), ["ab…ef"]);
}

#[test]
fn names_told_apart_differ_whatever_they_are() {
    let random = Philox::new(2, Stream::new("names"));
    for case in 0..300_u64 {
        let word = |i: u64| random.word(case * 1000 + i) as usize;
        let some = |i: u64, of: &[&'static str]| of[word(i) % of.len()];
        let names: Vec<String> = (0..8)
            .map(|n| {
                (0..word(n) as u64 % 12)
                    .map(|k| some(100 + n * 20 + k, &["a", "bb", "+", "_", " ", "-1", "…", "é"]))
                    .collect()
            })
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        shortened(&names, 4 + case as usize % 9);
    }
}
