use exmy_lab::scaling::{Fit, Form, Law};
use exmy_lab::studies::mx_instabilities::laws::{Fitted, judge, judge_damage};

const NAMES: [&str; 4] = ["bf16", "weights", "forward", "E2M3 and E3M2"];

#[test]
fn verdicts_need_laws_of_base_and_hybrids() {
    let of = |beta: f64| {
        let law = Law { form: Form::Chinchilla, a: 1.0, b: 1.0, e: 1.0, alpha: 0.5, beta };
        let fit = Some(Fit { law, huber: 1e-6, r2: 0.99 });
        Fitted { fit, diverged: 0, runs: 16 }
    };
    let (good, bad) = (of(0.5), of(1.7));
    let none = |diverged| Fitted { fit: None, diverged, runs: 16 };
    let word = |fits: [Fitted; 4]| judge(&NAMES, &fits).word();
    assert_eq!(word([good, good, good, bad]), "reproduced");
    assert_eq!(word([good, good, good, none(11)]), "reproduced", "divergence");
    let not = "untested at this size";
    assert_eq!(word([good, good, good, none(0)]), not, "no fit for another reason");
    assert_eq!(word([good, good, good, none(8)]), not, "half of the runs");
    assert_eq!(word([good, none(0), good, good]), not, "a hybrid whose law is open");
    assert_eq!(word([good, none(0), good, bad]), not);
    assert_eq!(word([good, none(11), good, good]), "contradicted");
    assert_eq!(word([none(0), good, good, bad]), not);
    let verdict = judge(&NAMES, &[good, good, good, none(11)]);
    assert!(verdict.reason().ends_with("E2M3 and E3M2: no fit, 11 of 16 runs diverged"));
    assert_eq!(word([good, good, good, good]), "not seen at this scale");
    assert_eq!(word([good, bad, good, good]), "contradicted");
    assert_eq!(word([bad, good, good, bad]), not, "no law of the base");
}

#[test]
fn damage_is_that_of_full_mx_alone() {
    let word = |stable: f64, full: f64| {
        judge_damage(&NAMES, &[vec![0.01], vec![stable, 0.0], vec![0.0], vec![0.02, full]]).word()
    };
    assert_eq!(word(0.02, 0.5), "reproduced");
    assert_eq!(word(0.02, 0.03), "not seen at this scale");
    assert_eq!(word(0.3, 0.5), "not seen at this scale");
    assert_eq!(word(0.3, 0.01), "contradicted");
}
