use exmy_train::recipe::Recipe;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct File {
    recipe: Recipe,
}

fn read(text: &str) -> Result<String, String> {
    let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let written = toml::to_string(&file).unwrap();
    assert_eq!(toml::from_str::<File>(&written).unwrap().recipe, file.recipe);
    Ok(file.recipe.to_string())
}

#[test]
fn a_table_is_the_line_that_means_the_same() {
    assert_eq!(read("recipe = \"mxfp8-mix\"").unwrap(), "mxfp8-mix");
    let text = r#"
        [recipe]
        base = "nv-nvfp4+last=1"
        [[recipe.rule]]
        layers = ["first1"]
        operators = ["o_proj", "down_proj"]
        products = "grad_weight"
        operands = ["grad_output"]
        from = "80%"
        numbers = "bf16>rht16>nvfp4@sr4"
        [[recipe.rule]]
        from = 100
        output = "bf16@rna"
        [[recipe.rule]]
        places = "norm_gamma"
        gradient = false
        numbers = "mxfp8-e4m3"
        [[recipe.rule]]
        operators = "o_proj"
        hcp = "s-o2-b-k5%"
        [[recipe.rule]]
        products = "forward"
        sums = "fma:bf16"
    "#;
    assert_eq!(
        read(text).unwrap(),
        "nv-nvfp4+last=1+from80%:first1:o_proj:down_proj:grad_weight:grad_output=\
         bf16>rht16>nvfp4@sr4+from100:output=bf16@rna+norm_gamma:tensor=mxfp8-e4m3\
         +o_proj:hcp=s-o2-b-k5%+forward:sums=fma:bf16"
    );
    assert_eq!(read("[recipe]\n[[recipe.rule]]\nnumbers = \"mxfp4\"").unwrap(), "f32+all=mxfp4");
}

#[test]
fn wrong_keys_and_words_are_answered() {
    let message = |text: &str| read(text).unwrap_err();
    assert!(message("[recipe]\nbsae = \"f32\"").contains("bsae"));
    assert!(message("[recipe]\n[[recipe.rule]]\nopertors = \"q\"").contains("operators"));
    assert!(message("[recipe]\n[[recipe.rule]]\nlayers = \"first1\"").contains("one of"));
    let text = "[recipe]\n[[recipe.rule]]\noperators = \"q_porj\"\nnumbers = \"mxfp4\"";
    assert!(message(text).contains("q_proj"));
}
