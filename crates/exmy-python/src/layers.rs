//! Linear layers under a recipe: their three products, with the bits of exmy's own training.
//!
//! A [`Plan`] is a recipe settled for some layers. Each layer is an operator of a model or several that share
//! one input, such as q, k and v. Their weights lie below each other, their outputs beside each other.
//! Weights are (outputs, inputs), as in PyTorch. What a recipe remembers from step to step is in the plan.

use std::sync::{Mutex, MutexGuard, PoisonError};

use exmy_train::nn::device::{Cpu, Matrix, MatrixMut, Slice, SliceMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::{Operator, Product, Site, Vector};
use exmy_train::recipe::device::Quantize;
use exmy_train::recipe::memory::Memory;
use exmy_train::recipe::rule::{Rule, Start, Subject};
use exmy_train::recipe::{Engine, Images, Linear, Phase, Recipe};
use pyo3::prelude::*;

use crate::array::{Input, Output};
use crate::blocks::matrix;
use crate::gpu::{Gpu, Images as GpuImages};
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
    work: Mutex<Work>,
}

/// Memory to work in on each device, and what the recipe remembers, which lies with the device used last.
#[derive(Default)]
struct Work {
    cpu: Images,
    gpu: GpuImages,
    on_gpu: bool,
}

impl Work {
    fn memory(&mut self) -> &mut Memory {
        if self.on_gpu { self.gpu.memory() } else { &mut self.cpu.memory }
    }

    /// Says where the next product is formed.
    fn go(&mut self, to_gpu: bool) {
        if self.on_gpu != to_gpu {
            let memory = std::mem::take(self.memory());
            self.on_gpu = to_gpu;
            *self.memory() = memory;
        }
    }
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

    fn held(&self) -> MutexGuard<'_, Work> {
        // Buffers are written before they are read, whatever another thread left in them.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<'a>(&'a self, layer: &'a Layer, at: (At, usize), rows: usize) -> Call<'a> {
        Call { plan: &self.plan, seed: self.seed, layer, at, rows }
    }

    /// Does some work on a GPU while other threads of Python run, and waits for its end.
    fn on(
        &self,
        py: Python<'_>,
        gpu: &Gpu,
        work: impl FnOnce(&mut GpuImages) + Send,
    ) -> PyResult<()> {
        gpu.finish(compute(py, || {
            let mut held = self.held();
            held.go(true);
            work(&mut held.gpu);
            gpu.wait()
        }))
    }

    /// Does some work on the CPU while other threads of Python run.
    fn here(&self, py: Python<'_>, work: impl FnOnce(&mut Images) + Send) {
        compute(py, || {
            let mut held = self.held();
            held.go(false);
            work(&mut held.cpu);
        });
    }
}

/// One product of one layer.
struct Call<'a> {
    plan: &'a exmy_train::recipe::Plan,
    seed: u64,
    layer: &'a Layer,
    at: (At, usize),
    rows: usize,
}

impl Call<'_> {
    fn engine<'a, D: Quantize>(&'a self, images: &'a mut Images<D>) -> (Engine<'a, D>, Group<'a>) {
        let (at, sequence) = self.at;
        let engine =
            Engine::new(self.plan, self.seed, phase(at), images).with_sequences_of(sequence);
        (engine, Group { layer: self.layer.block, members: &self.layer.members })
    }

    const fn sizes(&self) -> [usize; 3] {
        [self.rows, self.layer.inputs, self.layer.outputs]
    }

    fn forward<D: Quantize>(
        &self,
        device: &D,
        images: &mut Images<D>,
        [x, w]: [Slice<'_, D>; 2],
        bias: Option<Slice<'_, D>>,
        mut y: SliceMut<'_, D>,
    ) {
        let ((mut engine, group), [rows, inputs, outputs]) = (self.engine(images), self.sizes());
        let (x, w) = (Matrix::new(x, rows, inputs), Matrix::new(w, outputs, inputs));
        engine.forward(device, &group, x, w, MatrixMut::new(y.again(), rows, outputs));
        if let Some(bias) = bias {
            device.add_bias(engine.vector(group.layer, Vector::Bias, false), y, bias);
        }
    }

    fn grad_input<D: Quantize>(
        &self,
        device: &D,
        images: &mut Images<D>,
        [g, w]: [Slice<'_, D>; 2],
        dx: SliceMut<'_, D>,
    ) {
        let ((mut engine, group), [rows, inputs, outputs]) = (self.engine(images), self.sizes());
        let (g, w) = (Matrix::new(g, rows, outputs), Matrix::new(w, outputs, inputs));
        engine.grad_input(device, &group, g, w, MatrixMut::new(dx, rows, inputs));
    }

    /// Both gradients are written over.
    fn grad_weight<D: Quantize>(
        &self,
        device: &D,
        images: &mut Images<D>,
        [g, x]: [Slice<'_, D>; 2],
        dw: Option<SliceMut<'_, D>>,
        db: Option<SliceMut<'_, D>>,
    ) {
        let ((mut engine, group), [rows, inputs, outputs]) = (self.engine(images), self.sizes());
        if let Some(dw) = dw {
            let (g, x) = (Matrix::new(g, rows, outputs), Matrix::new(x, rows, inputs));
            let mut dw = MatrixMut::new(dw, outputs, inputs);
            device.fill(dw.again(), 0.0);
            engine.grad_weight(device, &group, g, x, dw);
        }
        if let Some(mut db) = db {
            let rounding = engine.vector(group.layer, Vector::Bias, true);
            device.fill(MatrixMut::new(db.again(), 1, outputs), 0.0);
            device.bias_backward(rounding, g, db);
        }
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
        let by_share = |rule: &&Rule| matches!(rule.on.from, Some(Start::Percent(_)));
        if let (None, Some(rule)) = (steps, recipe.rules().iter().find(by_share)) {
            return Err(value_error(format_args!(
                "{rule} begins after a share of the run's steps: steps=10000 says how many there are"
            )));
        }
        let plan = exmy_train::recipe::Plan::of(&recipe, linears, steps.unwrap_or(1));
        let plan = plan.map_err(|error| value_error(format_args!("recipe {recipe}: {error}")))?;
        Ok(Self { recipe, plan, layers, seed, work: Mutex::default() })
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
        let on = |rule: &Rule| !rule.on.layers.is_empty() || !rule.on.operators.is_empty();
        self.recipe.rules().iter().any(on)
    }

    /// The numbers of each operand at a step: of the three products in turn, the left and the right one.
    fn numbers(&self, site: &str, step: u64) -> PyResult<Vec<String>> {
        let site: Site = site.parse().map_err(value_error)?;
        let of = |product: &Product| {
            product.operands().map(|one| self.plan.operand(step, site, *product, one).to_string())
        };
        Ok(Product::ALL.iter().flat_map(of).collect())
    }

    /// y = x wᵀ, and the bias added: x (rows, inputs), w (outputs, inputs), y (rows, outputs).
    /// On a GPU `device` is its number, and tensors are addresses in its memory.
    fn forward(
        &self,
        py: Python<'_>,
        device: Option<usize>,
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
        let call = self.call(layer, at, rows);
        if let Some(device) = device {
            let gpu = Gpu::of(device)?;
            let (x, w) = (gpu.tensor(x, [rows, inputs])?, gpu.tensor(w, [outputs, inputs])?);
            let b = b.map(|b| gpu.tensor(b, [1, outputs])).transpose()?;
            let mut y = gpu.tensor(y, [rows, outputs])?;
            return self.on(py, &gpu, |images| {
                let b = b.as_ref().map(Into::into);
                call.forward(
                    gpu.device(),
                    images.of(&gpu),
                    [(&x).into(), (&w).into()],
                    b,
                    (&mut y).into(),
                );
            });
        }
        let (x, w) = (Input::<f32>::new(x, "x")?, Input::<f32>::new(w, "w")?);
        let b = b.map(|b| Input::<f32>::new(b, "b")).transpose()?;
        let mut y = Output::<f32>::new(y, "y", rows * outputs)?;
        y.apart_from(&x, ["y", "x"])?;
        y.apart_from(&w, ["y", "w"])?;
        let (x, w) = (matrix(&x, rows, inputs, "x")?, matrix(&w, outputs, inputs, "w")?);
        let b = b.as_ref().map(|b| matrix(b, 1, outputs, "b").map(|b| b.data())).transpose()?;
        let y = y.elements();
        self.here(py, |images| {
            let b = b.map(Into::into);
            call.forward(&Cpu::new(), images, [x.data().into(), w.data().into()], b, y.into());
        });
        Ok(())
    }

    /// dx = g w: g (rows, outputs), w (outputs, inputs), dx (rows, inputs).
    fn grad_input(
        &self,
        py: Python<'_>,
        device: Option<usize>,
        layer: usize,
        at: (At, usize),
        rows: usize,
        g: &Bound<'_, PyAny>,
        w: &Bound<'_, PyAny>,
        dx: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let layer = self.layer(layer)?;
        let (inputs, outputs) = (layer.inputs, layer.outputs);
        let call = self.call(layer, at, rows);
        if let Some(device) = device {
            let gpu = Gpu::of(device)?;
            let (g, w) = (gpu.tensor(g, [rows, outputs])?, gpu.tensor(w, [outputs, inputs])?);
            let mut dx = gpu.tensor(dx, [rows, inputs])?;
            return self.on(py, &gpu, |images| {
                let operands = [(&g).into(), (&w).into()];
                call.grad_input(gpu.device(), images.of(&gpu), operands, (&mut dx).into());
            });
        }
        let (g, w) = (Input::<f32>::new(g, "g")?, Input::<f32>::new(w, "w")?);
        let mut dx = Output::<f32>::new(dx, "dx", rows * inputs)?;
        dx.apart_from(&g, ["dx", "g"])?;
        dx.apart_from(&w, ["dx", "w"])?;
        let (g, w) = (matrix(&g, rows, outputs, "g")?, matrix(&w, outputs, inputs, "w")?);
        let dx = dx.elements();
        self.here(py, |images| {
            let operands = [g.data().into(), w.data().into()];
            call.grad_input(&Cpu::new(), images, operands, dx.into());
        });
        Ok(())
    }

    /// dw = gᵀ x, and the sums of the columns of g where `db` is given: g (rows, outputs), x (rows, inputs),
    /// dw (outputs, inputs), db (outputs).
    fn grad_weight(
        &self,
        py: Python<'_>,
        device: Option<usize>,
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
        let call = self.call(layer, at, rows);
        if let Some(device) = device {
            let gpu = Gpu::of(device)?;
            let (g, x) = (gpu.tensor(g, [rows, outputs])?, gpu.tensor(x, [rows, inputs])?);
            let mut dw = dw.map(|dw| gpu.tensor(dw, [outputs, inputs])).transpose()?;
            let mut db = db.map(|db| gpu.tensor(db, [1, outputs])).transpose()?;
            return self.on(py, &gpu, |images| {
                let (dw, db) = (dw.as_mut().map(Into::into), db.as_mut().map(Into::into));
                call.grad_weight(gpu.device(), images.of(&gpu), [(&g).into(), (&x).into()], dw, db);
            });
        }
        let (g, x) = (Input::<f32>::new(g, "g")?, Input::<f32>::new(x, "x")?);
        let mut dw = dw.map(|dw| Output::<f32>::new(dw, "dw", outputs * inputs)).transpose()?;
        let mut db = db.map(|db| Output::<f32>::new(db, "db", outputs)).transpose()?;
        for (out, name) in [(&dw, "dw"), (&db, "db")] {
            if let Some(out) = out {
                out.apart_from(&g, [name, "g"])?;
                out.apart_from(&x, [name, "x"])?;
            }
        }
        let (g, x) = (matrix(&g, rows, outputs, "g")?, matrix(&x, rows, inputs, "x")?);
        let (dw, db) = (dw.as_mut().map(Output::elements), db.as_mut().map(Output::elements));
        self.here(py, |images| {
            let (dw, db) = (dw.map(Into::into), db.map(Into::into));
            call.grad_weight(&Cpu::new(), images, [g.data().into(), x.data().into()], dw, db);
        });
        Ok(())
    }

    /// What the recipe remembers from step to step; empty for most.
    #[getter]
    fn memory(&self) -> String {
        self.held().memory().to_text()
    }

    #[setter]
    fn set_memory(&self, text: &str) -> PyResult<()> {
        *self.held().memory() = Memory::from_text(text).map_err(value_error)?;
        Ok(())
    }
}

/// The place of the linear operator with this name, as `layers.3.q_proj`; None if the name says none.
#[pyfunction]
pub(crate) fn place_of(name: &str) -> Option<String> {
    let site = Site::of_weight(&format!("{name}.weight"))?.to_string();
    site.parse::<Site>().ok().map(|site| site.to_string())
}
