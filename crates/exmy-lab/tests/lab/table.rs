use exmy_lab::table::{Run, rows, text};
use exmy_train::train::run::Summary;

fn run(recipe: &str, lr: &str, seed: u64, val_loss: Option<f64>) -> Run {
    let result = Summary {
        version: 2,
        recipe: recipe.into(),
        seed,
        lr: 0.1,
        steps: 9,
        tokens: 9,
        parameters: 9,
        train_loss: val_loss,
        val_loss,
        val_bits_per_byte: None,
        diverged_at: val_loss.is_none().then_some(7),
        reason: None,
        precision: Vec::new(),
        records: None,
    };
    Run { labels: vec![recipe.into(), lr.into()], result: Some(result) }
}

#[test]
fn means_spreads_and_gaps_by_hand() {
    let mut runs = vec![
        run("f32", "1", 1, Some(1.0)),
        run("f32", "2", 1, Some(2.0)),
        run("f32", "1", 2, Some(3.0)),
        run("f32", "2", 2, None),
        run("bf16", "1", 1, Some(2.5)),
        run("bf16", "2", 1, Some(2.5)),
    ];
    runs.push(Run { result: None, ..runs[4].clone() });
    let rows = rows(&runs);
    assert_eq!(
        rows.iter().map(|row| row.val_loss.unwrap()).collect::<Vec<_>>(),
        [2.0, 2.0, 2.5, 2.5]
    );
    assert_eq!((rows[0].spread, rows[0].gap), (Some(2.0_f64.sqrt()), Some(0.0)));
    assert_eq!((rows[1].spread, rows[1].diverged, rows[1].unfinished), (None, Some((7, 1)), 0));
    // Within seed 1; from the mean of both seeds of f32 it would be 25 %.
    assert_eq!((rows[2].gap, rows[2].unfinished, rows[2].runs), (Some(150.0), 1, 2));
    assert_eq!(rows[3].gap, Some(25.0));
    let text = text(&["recipe", "lr"], &rows);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>().join(" "),
        "recipe lr seeds train loss val loss +- gap"
    );
    assert!(lines[2].ends_with("+0.00 %, 1 diverged, the first at step 7"), "{text}");
    assert!(lines[3].ends_with("+150.00 %, 1 not done"), "{text}");
}

/// Bits a byte of text have a column where some run knows them.
#[test]
fn bits_of_text() {
    let mut runs = [run("f32", "1", 1, Some(2.0)), run("bf16", "1", 1, Some(2.5))];
    let header = ["recipe", "lr"];
    assert!(!text(&header, &rows(&runs)).contains("bits"));
    runs[0].result.as_mut().unwrap().val_bits_per_byte = Some(0.75);
    let shown = text(&header, &rows(&runs));
    let lines: Vec<Vec<&str>> =
        shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines[0],
        ["recipe", "lr", "train", "loss", "val", "loss", "val", "bits/byte", "gap"]
    );
    assert_eq!(lines[1], ["f32", "1", "2.0000", "2.0000", "0.7500", "+0.00", "%"]);
    assert_eq!(lines[2], ["bf16", "1", "2.5000", "2.5000", "-", "+25.00", "%"]);
}
