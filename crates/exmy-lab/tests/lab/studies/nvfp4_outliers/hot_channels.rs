use exmy_lab::studies::nvfp4_outliers::hot_channels::{
    Points, Sets, claims, lasting, life, ranks, sets,
};
use exmy_lab::test_result::verdict;
use exmy_train::nn::site::Site;
use exmy_train::train::probe::{Line, Values};

fn line(step: u64, channels: &[f64]) -> Line {
    let mut values = Values::default();
    values.list("layers.0.q_proj.error", channels.to_vec());
    Line { step, probe: "hot".into(), values }
}

#[test]
fn sets_by_hand() {
    let lines = [line(1, &[1.0, 2.0]), line(2, &[2.0, 3.0]), line(3, &[3.0, 2.0])];
    let sites = ["layers.0.q_proj", "layers.7.q_proj"].map(|site| site.parse().unwrap());
    let found = sets(&lines, &sites, "error");
    assert_eq!(found.consecutive, [(2.0, 1.0 / 3.0), (3.0, 1.0)]);
    assert_eq!(found.last, [(1.0, 1.0 / 3.0), (2.0, 1.0)]);
    // Stays: channel 1 one record, 2 three, 3 two; in nine tenths of three records: 2 alone, of two
    // places.
    assert_eq!((found.life, found.lasting), (2.0, 0.5));
    assert_eq!(sets(&[], &[], "error"), Sets::default());
}

/// By hand: of four channels two neighbours change places, 1 - 6 x 2 / (4 x 15) = 0.8; three in the
/// opposite order: -1.
#[test]
fn rank_drift_by_hand() {
    let line = |step: u64, parts: &[(&str, &[f64])]| {
        let mut values = Values::default();
        for (name, list) in parts {
            values.list(format!("layers.0.{name}"), list.to_vec());
        }
        Line { step, probe: "channels".into(), values }
    };
    let still: (&str, &[f64]) = ("q_proj.output", &[1.0, 2.0]);
    let lines = [
        line(
            5,
            &[
                ("q_proj.input", &[1.0, 2.0, 3.0, 4.0]),
                ("o_proj.input", &[10.0, 20.0, 30.0]),
                still,
            ],
        ),
        line(
            10,
            &[("q_proj.input", &[1.0, 3.0, 2.0, 4.0]), ("o_proj.input", &[0.3, 0.2, 0.1]), still],
        ),
        // Ranks and not magnitudes; a site that was not measured is left out.
        line(15, &[("q_proj.input", &[1.0, 300.0, 20.0, 4000.0]), still]),
    ];
    let of = |sites: &[&str]| {
        let sites: Vec<Site> =
            sites.iter().map(|site| format!("layers.0.{site}").parse().unwrap()).collect();
        ranks(&lines, &sites)
    };
    let close = |found: &Points, expected: &[(f64, f64)]| {
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-12)
    };
    // The mean over both sites is (0.8 - 1) / 2.
    assert!(
        close(&of(&["q_proj", "o_proj"]), &[(10.0, -0.1), (15.0, 1.0)]),
        "{:?}",
        of(&["q_proj", "o_proj"])
    );
    assert!(close(&of(&["q_proj"]), &[(10.0, 0.8), (15.0, 1.0)]), "{:?}", of(&["q_proj"]));
    assert!(close(&of(&["o_proj"]), &[(10.0, -1.0)]) && of(&["v_proj"]).is_empty());
}

#[test]
fn a_channel_that_comes_back_stays_twice() {
    let records = [[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]];
    let sets: Vec<&[f64]> = records.iter().map(<[f64; 2]>::as_slice).collect();
    assert_eq!(life(&sets), Some(6.0 / 4.0));
    // Ten records, nine of them with channel 5.
    let mut ten = [[5.0, 0.0]; 10];
    ten[3] = [7.0, 0.0];
    let sets: Vec<&[f64]> = ten.iter().map(<[f64; 2]>::as_slice).collect();
    assert_eq!(lasting(&sets), Some(1.0));
    ten[4] = [7.0, 0.0];
    let sets: Vec<&[f64]> = ten.iter().map(<[f64; 2]>::as_slice).collect();
    assert_eq!((lasting(&sets), lasting(&[]), life(&[])), (Some(0.5), None, None));
}

#[test]
fn each_verdict_can_be_reached() {
    let run = |from: f64, to: f64, shift: f64| {
        let y = |i: u32| from + (to - from) * f64::from(i.min(15)) / 15.0;
        let points: Points =
            (1..=20).map(|i| (f64::from(i), y(i) + shift * f64::from(i % 2))).collect();
        Sets { consecutive: points.clone(), last: points, ..Sets::default() }
    };
    let word = |from, to| {
        let seeds: Vec<Sets> = [0.0, 0.004, 0.008].map(|shift| run(from, to, shift)).into();
        verdict(&claims(&seeds)).word()
    };
    assert_eq!(word(0.1, 0.9), "reproduced");
    assert_eq!(word(0.9, 0.1), "contradicted");
    assert_eq!(word(0.3, 0.6), "not seen at this scale");
    assert_eq!(verdict(&claims(&[run(0.1, 0.9, 0.0)])).word(), "untested at this size");
}
