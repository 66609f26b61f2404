use exmy_lab::amounts::{duration, grouped, operations, thousands};

#[test]
fn amounts_have_units_and_are_never_zero() {
    let of = [0.2, 1.4, 99.0, 120.0, 5_400.0, 7_200.0, 400_000.0].map(duration);
    assert_eq!(of, ["<1 s", "1 s", "99 s", "2 min", "90 min", "2.0 h", "5 days"]);
    let of = [4e3, 4e7, 1.25e9, 3e12, 2e15, 7e18].map(operations);
    let shown = ["<1 MFLOP", "40.0 MFLOP", "1.2 GFLOP", "3.0 TFLOP", "2.0 PFLOP", "7.0 EFLOP"];
    assert_eq!(of, shown);
    let text = "9999 to (1234567), of s-12345 0.12345 12345.5 12345x -20000.";
    let shown =
        "9999 to (1\u{202f}234\u{202f}567), of s-12345 0.12345 12345.5 12345x -20\u{202f}000.";
    assert_eq!(grouped(text), shown);
    assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1 000", "1 234 567"]);
}
