//! Linear layers under a recipe: their three products, with the bits of exmy's own training.
//!
//! A [`Plan`] is a recipe settled for some layers. Each layer is an operator of a model or several that share
//! one input, such as q, k and v. Their weights lie below each other, their outputs beside each other.
//! Weights are (outputs, inputs), as in PyTorch. What a recipe remembers from step to step is in the plan.

use std::sync::{Mutex, MutexGuard, PoisonError};

use exmy_train::nn::bias;
use exmy_train::nn::device::{Cpu, MatrixMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::{Operator, Site, Vector};
use exmy_train::recipe::memory::Memory;
use exmy_train::recipe::rule::{Start, Subject};
use exmy_train::recipe::{Engine, Images, Linear, Phase, Recipe};
use pyo3::prelude::*;

use crate::array::{Input, Output};
use crate::blocks::matrix;
use crate::{compute, value_error};

/// Operators that are multiplied together.
struct Layer {
    block: Option<u32>,
    members: Vec<(Operator, usize)>,
    inputs: usize,
    outputs: usize,
}

/// A recipe settled for the layers of a model.
#[pyclass(frozen, module = "exmy._exmy")]
pub(crate) struct Plan {
    recipe: Recipe,
    plan: exmy_train::recipe::Plan,
    layers: Vec<Layer>,
    seed: u64,
    images: Mutex<Images>,
}

/// A step, a part of it (a pass of an evaluation), and whether it trains.
type At = (u64, u64, bool);

const fn phase((step, part, trains): At) -> Phase {
    match (trains, part) {
        (true, 0) => Phase::Train(step),
        (true, _) => Phase::TrainPart { step, part },
        (false, pass) => Phase::Evaluate { step, pass },
    }
}

/// The operators of one layer, as texts with their numbers of outputs.
fn layer(members: &[(String, usize)], inputs: usize, linears: &mut Vec<Linear>) -> PyResult<Layer> {
    let mut own: Vec<(Site, usize)> = Vec::new();
    for (text, outputs) in members {
        let site: Site = text.parse().map_err(value_error)?;
        if *outputs == 0 || inputs == 0 {
            return Err(value_error(format_args!(
                "{site} has {inputs} inputs and {outputs} outputs"
            )));
        }
        if let Some((first, _)) = own.first().filter(|(first, _)| !first.shares_input(site)) {
            return Err(value_error(format_args!(
                "{first} and {site} do not read one input, and one layer multiplies one: q_proj, k_proj and \
                 v_proj of one block do, and gate_proj and up_proj"
            )));
        }
        if linears.iter().any(|linear| linear.site == site) {
            return Err(value_error(format_args!(
                "two layers are {site}; each needs a place of its own, for its random bits"
            )));
        }
        linears.push(Linear { site, outputs: *outputs, inputs });
        own.push((site, *outputs));
    }
    let Some((first, _)) = own.first() else {
        return Err(value_error("a layer has at least one operator"));
    };
    let block = first.layer;
    let outputs = own.iter().map(|(_, outputs)| outputs).sum();
    let members = own.into_iter().map(|(site, outputs)| (site.operator, outputs)).collect();
    Ok(Layer { block, members, inputs, outputs })
}

impl Plan {
    fn layer(&self, at: usize) -> PyResult<&Layer> {
        let count = self.layers.len();
        let beyond = || value_error(format_args!("there is no layer {at}; there are {count}"));
        self.layers.get(at).ok_or_else(beyond)
    }

    fn images(&self) -> MutexGuard<'_, Images> {
        // Buffers are written before they are read, whatever another thread left in them.
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does some work with the engine of a step, while other threads of Python run.
    fn work(
        &self,
        py: Python<'_>,
        (at, sequence): (At, usize),
        layer: &Layer,
        work: impl FnOnce(&mut Engine<'_>, &Group<'_>) + Send,
    ) {
        compute(py, || {
            let mut images = self.images();
            let mut engine = Engine::new(&self.plan, self.seed, phase(at), &mut images)
                .with_sequences_of(sequence);
            work(&mut engine, &Group { layer: layer.block, members: &layer.members });
        });
    }
}

#[pymethods]
impl Plan {
    /// A recipe for layers: of each the operators with their outputs, and the inputs. `steps` are those of
    /// the run, which rules such as `from80%` need.
    #[new]
    fn new(
        recipe: &str,
        layers: Vec<(Vec<(String, usize)>, usize)>,
        steps: Option<u64>,
        seed: u64,
    ) -> PyResult<Self> {
        let recipe: Recipe = recipe.parse().map_err(value_error)?;
        let mut linears = Vec::new();
        let made = layers.iter().map(|(members, inputs)| layer(members, *inputs, &mut linears));
        let layers = made.collect::<PyResult<_>>()?;
        let by_share = |rule: &&_| matches!(rule_start(rule), Some(Start::Percent(_)));
        if let (None, Some(rule)) = (steps, recipe.rules().iter().find(by_share)) {
            return Err(value_error(format_args!(
                "{rule} begins after a share of the run's steps: steps=10000 says how many there are"
            )));
        }
        let plan = exmy_train::recipe::Plan::of(&recipe, linears, steps.unwrap_or(1));
        let plan = plan.map_err(|error| value_error(format_args!("recipe {recipe}: {error}")))?;
        Ok(Self { recipe, plan, layers, seed, images: Mutex::default() })
    }

    /// The recipe's text.
    #[getter]
    fn recipe(&self) -> String {
        self.recipe.to_string()
    }

    /// The rules that are about other tensors and operations than those of linear layers.
    #[getter]
    fn others(&self) -> Vec<String> {
        let other = |subject: &Subject| match subject {
            Subject::Places(..) => true,
            Subject::Vectors(some, _) => some.iter().any(|one| *one != Vector::Bias),
            _ => false,
        };
        let rules = self.recipe.rules().iter().filter(|rule| other(&rule.on.subject));
        rules.map(ToString::to_string).collect()
    }

    /// Whether some rule is about chosen blocks or operators.
    #[getter]
    fn chooses(&self) -> bool {
        let on = |rule: &exmy_train::recipe::rule::Rule| {
            !rule.on.layers.is_empty() || !rule.on.operators.is_empty()
        };
        self.recipe.rules().iter().any(on)
    }

    /// The numbers of each operand at a step: of the three products in turn, the left and the right one.
    fn numbers(&self, site: &str, step: u64) -> PyResult<Vec<String>> {
        use exmy_train::nn::site::Product;
        let site: Site = site.parse().map_err(value_error)?;
        let of = |product: &Product| {
            product.operands().map(|one| self.plan.operand(step, site, *product, one).to_string())
        };
        Ok(Product::ALL.iter().flat_map(of).collect())
    }

    /// y = x wᵀ, and the bias added: x (rows, inputs), w (outputs, inputs), y (rows, outputs).
    fn forward(
        &self,
        py: Python<'_>,
        layer: usize,
        at: (At, usize),
        rows: usize,
        x: &Bound<'_, PyAny>,
        w: &Bound<'_, PyAny>,
        b: Option<&Bound<'_, PyAny>>,
        y: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let layer = self.layer(layer)?;
        let (inputs, outputs) = (layer.inputs, layer.outputs);
        let (x, w) = (Input::<f32>::new(x, "x")?, Input::<f32>::new(w, "w")?);
        let b = b.map(|b| Input::<f32>::new(b, "b")).transpose()?;
        let mut y = Output::<f32>::new(y, "y", rows * outputs)?;
        y.apart_from(&x, ["y", "x"])?;
        y.apart_from(&w, ["y", "w"])?;
        let (x, w) = (matrix(&x, rows, inputs, "x")?, matrix(&w, outputs, inputs, "w")?);
        let b = b.as_ref().map(|b| matrix(b, 1, outputs, "b").map(|_| b.elements())).transpose()?;
        let y = y.elements();
        self.work(py, at, layer, |engine, group| {
            let out = MatrixMut::new(&mut *y, rows, outputs);
            engine.forward(&Cpu::new(), group, x.into(), w.into(), out);
            if let Some(b) = b {
                let engine: &dyn Products<Cpu> = engine;
                bias::add_bias(engine.vector(group.layer, Vector::Bias, false), y, b);
            }
        });
        Ok(())
    }

    /// dx = g w: g (rows, outputs), w (outputs, inputs), dx (rows, inputs).
    fn grad_input(
        &self,
        py: Python<'_>,
        layer: usize,
        at: (At, usize),
        rows: usize,
        g: &Bound<'_, PyAny>,
        w: &Bound<'_, PyAny>,
        dx: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let layer = self.layer(layer)?;
        let (inputs, outputs) = (layer.inputs, layer.outputs);
        let (g, w) = (Input::<f32>::new(g, "g")?, Input::<f32>::new(w, "w")?);
        let mut dx = Output::<f32>::new(dx, "dx", rows * inputs)?;
        dx.apart_from(&g, ["dx", "g"])?;
        dx.apart_from(&w, ["dx", "w"])?;
        let (g, w) = (matrix(&g, rows, outputs, "g")?, matrix(&w, outputs, inputs, "w")?);
        let dx = dx.elements();
        self.work(py, at, layer, |engine, group| {
            let out = MatrixMut::new(dx, rows, inputs);
            engine.grad_input(&Cpu::new(), group, g.into(), w.into(), out);
        });
        Ok(())
    }

    /// dw = gᵀ x, and the sums of the columns of g where `db` is given: g (rows, outputs), x (rows, inputs),
    /// dw (outputs, inputs), db (outputs).
    fn grad_weight(
        &self,
        py: Python<'_>,
        layer: usize,
        at: (At, usize),
        rows: usize,
        g: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        dw: Option<&Bound<'_, PyAny>>,
        db: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let layer = self.layer(layer)?;
        let (inputs, outputs) = (layer.inputs, layer.outputs);
        let (g, x) = (Input::<f32>::new(g, "g")?, Input::<f32>::new(x, "x")?);
        let dw = dw.map(|dw| Output::<f32>::new(dw, "dw", outputs * inputs)).transpose()?;
        let db = db.map(|db| Output::<f32>::new(db, "db", outputs)).transpose()?;
        for (out, name) in [(&dw, "dw"), (&db, "db")] {
            if let Some(out) = out {
                out.apart_from(&g, [name, "g"])?;
                out.apart_from(&x, [name, "x"])?;
            }
        }
        let (g, x) = (matrix(&g, rows, outputs, "g")?, matrix(&x, rows, inputs, "x")?);
        self.work(py, at, layer, |engine, group| {
            if let Some(mut dw) = dw {
                // Products are added to what is there.
                let dw = dw.elements();
                dw.fill(0.0);
                let out = MatrixMut::new(dw, outputs, inputs);
                engine.grad_weight(&Cpu::new(), group, g.into(), x.into(), out);
            }
            if let Some(mut db) = db {
                let engine: &dyn Products<Cpu> = engine;
                let rounding = engine.vector(group.layer, Vector::Bias, true);
                let db = db.elements();
                db.fill(0.0);
                bias::bias_backward(rounding, g.data(), db);
            }
        });
        Ok(())
    }

    /// What the recipe remembers from step to step; empty for most.
    #[getter]
    fn memory(&self) -> String {
        self.images().memory.to_text()
    }

    #[setter]
    fn set_memory(&self, text: &str) -> PyResult<()> {
        self.images().memory = Memory::from_text(text).map_err(value_error)?;
        Ok(())
    }
}

const fn rule_start(rule: &exmy_train::recipe::rule::Rule) -> Option<Start> {
    rule.on.from
}

/// The place of the linear operator with this name, as `layers.3.q_proj`; None if the name says none.
#[pyfunction]
pub(crate) fn place_of(name: &str) -> Option<String> {
    let site = Site::of_weight(&format!("{name}.weight"))?.to_string();
    site.parse::<Site>().ok().map(|site| site.to_string())
}
