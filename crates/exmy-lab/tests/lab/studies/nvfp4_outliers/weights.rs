use exmy_lab::run_config::{RunConfig, Setting};
use exmy_lab::runner::Silent;
use exmy_lab::store::Store;
use exmy_lab::studies::nvfp4_outliers::weights::gaps;
use exmy_lab::study_scale::StudyScale;
use exmy_train::train::run::load_data;
use exmy_train::train::trainer::Trainer;
use std::sync::Arc;

/// The same weights are trained here once more, and the losses of both recipes read by hand.
#[test]
fn gaps_are_of_the_weights_of_their_step() {
    let changes = "model.layers = 1\nmodel.d_model = 64\nmodel.hidden = 192\nmodel.heads = 2\n\
                   model.kv_heads = 2\nmodel.context = 64\nrecipe = \"bf16+out=bf16\"\n\
                   train.steps = 3\ntrain.warmup = 0\ntrain.batch = 2\ntrain.lr = 1e-2\n\
                   record.eval_every = 0\nrecord.checkpoint_every = 0\nrecord.eval_windows = 4";
    let setting = Setting::unread(StudyScale::Smoke);
    let config = setting.config("sa-micro").overlaid(changes).unwrap();
    let planned = RunConfig::new(config).keeping(&[2]);
    let mut config = planned.config;
    config.data.fingerprint.clear();
    let data = load_data(&mut config).unwrap();
    let planned = RunConfig { config, parent: None };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let data = Arc::new(data);
    store.runner().work(&[planned.run()], Some(Arc::clone(&data)), &Silent).unwrap();
    let four = "nv-nvfp4+last=0";
    let run = (planned.clone(), store.runs().of(&planned).unwrap());
    let base = "bf16+out=bf16";
    let found = gaps(&run, 2, base, &[base, four]).unwrap();

    let mut trainer = Trainer::new(&planned.config, &data).unwrap();
    trainer.step(None);
    trainer.step(None);
    let own = trainer.validation_loss();
    let config = planned.config.overlaid(&format!("recipe = {four:?}")).unwrap();
    let mut other = Trainer::new(&config, &data).unwrap();
    other.begin(trainer.state().params.to_vec());
    let gap = 100.0 * (other.validation_loss() - own) / own;
    assert_eq!(found[0], 0.0, "the same recipe");
    assert!((found[1] - gap).abs() < 1e-9 && gap.abs() > 1e-3, "{found:?}, not {gap}");
}
