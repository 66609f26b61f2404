use exmy_train::nn::site::{Operand, Operator, Product, Site};
use exmy_train::recipe::plan::{Linear, Plan, Share, last};

/// GPT-2's operators: q, k, v and o of d x d, up and down of 4d x d, a head for 256 tokens.
fn gpt_like(layers: u32, d: usize) -> Vec<Linear> {
    use Operator::{Down, Head, K, O, Q, Up, V};
    let block = [(Q, d, d), (K, d, d), (V, d, d), (O, d, d), (Up, 4 * d, d), (Down, d, 4 * d)];
    let linear = |layer, (operator, outputs, inputs)| Linear {
        site: Site { layer, operator },
        outputs,
        inputs,
    };
    let blocks = (0..layers).flat_map(|layer| block.map(|one| linear(Some(layer), one)));
    blocks.chain([linear(None, (Head, 256, d))]).collect()
}

fn plan(recipe: &str, layers: u32, d: usize) -> Plan {
    Plan::of(&recipe.parse().unwrap(), gpt_like(layers, d), 1000).unwrap()
}

fn site(layer: u32, operator: Operator) -> Site {
    Site { layer: Some(layer), operator }
}

#[test]
fn later_rules_override_earlier_ones() {
    let plan = plan("mxfp4+o_proj=bf16+last1:o_proj:forward=mxfp8-e4m3+from500:weight=f32", 3, 64);
    let text = |step, layer, product, operand| {
        plan.operand(step, site(layer, Operator::O), product, operand).to_string()
    };
    assert_eq!(text(0, 0, Product::Forward, Operand::Weight), "bf16");
    assert_eq!(text(0, 2, Product::Forward, Operand::Weight), "mxfp8-e4m3");
    assert_eq!(text(0, 2, Product::GradInput, Operand::Weight), "bf16");
    assert_eq!(text(499, 2, Product::Forward, Operand::Weight), "mxfp8-e4m3");
    assert_eq!(text(500, 2, Product::Forward, Operand::Weight), "f32");
    assert_eq!(text(500, 2, Product::Forward, Operand::Input), "mxfp8-e4m3");
    assert_eq!(plan.switches(), [0, 500]);
}

/// At 4 layers, the last block would be 24.5 % with the head and fits but for q; of 24 layers, 15 % are
/// four blocks; of two, half of one is left out.
#[test]
fn the_last_blocks_stay_within_a_quarter() {
    let share = |layers, d| {
        let plan = plan("nvfp4+lm_head=bf16+last15%=bf16", layers, d);
        Share::within(&plan.shares(0), 4)
    };
    for (layers, d) in [(2, 64), (4, 256), (6, 192), (12, 768), (24, 1024)] {
        let share = share(layers, d);
        assert!((0.75..0.9).contains(&share), "{layers} layers: {share}");
    }
    let sites = last(&gpt_like(24, 1024), 24, 15);
    assert_eq!(sites.len(), 4 * 6);
    assert!(sites.iter().all(|site| site.layer >= Some(20)));
    let sites = last(&gpt_like(4, 256), 4, 15);
    assert!(sites.contains(&site(3, Operator::Down)) && !sites.contains(&site(3, Operator::Q)));
}

#[test]
fn shares_are_those_of_the_parameters() {
    let shares = plan("mxfp8-mix+lm_head=bf16", 2, 64).shares(0);
    let text: Vec<String> = shares.iter().map(Share::to_string).collect();
    // 2 x 12 x 64^2 in blocks, 256 x 64 in the head: 98304 of 114688.
    assert_eq!(
        text,
        [
            "forward 85.7 % mxfp8-e4m3",
            "forward 14.3 % bf16",
            "grad_input 85.7 % mxfp8-e5m2 x mxfp8-e4m3",
            "grad_input 14.3 % bf16",
            "grad_weight 85.7 % mxfp8-e5m2 x mxfp8-e4m3",
            "grad_weight 14.3 % bf16",
        ]
    );
}

#[test]
fn rotations_go_together() {
    let of = |text: &str| Plan::of(&text.parse().unwrap(), gpt_like(2, 64), 10);
    assert!(of("rht16>nvfp4").is_ok());
    let error = of("nvfp4+grad_weight:input=rht16>nvfp4").unwrap_err().to_string();
    assert!(error.contains("layers.0.q_proj, grad_weight"), "{error}");
    let error = of("rht16>nvfp4+hcp=s-o2-b").unwrap_err().to_string();
    assert!(error.contains("no channels"), "{error}");
}

#[test]
fn names_of_weights_are_sites() {
    let of = |name: &str| Site::of_weight(name).map(|site| site.to_string());
    let name = "model.layers.11.self_attn.q_proj.weight";
    assert_eq!(of(name).as_deref(), Some("layers.11.q_proj"));
    assert_eq!(of("lm_head.weight").as_deref(), Some("lm_head"));
    assert_eq!(of("model.layers.1.input_layernorm.weight"), None);
    assert_eq!(of("model.norm.weight"), None);
}
