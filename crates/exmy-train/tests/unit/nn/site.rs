use exmy_train::nn::site::{Operand, Operator, Place, Product, Site, Vector};

#[test]
fn every_name_reads_back() {
    for &operator in Operator::ALL {
        assert_eq!(operator.name().parse(), Ok(operator));
        let layer = (operator != Operator::Head).then_some(12);
        let site = Site { layer, operator };
        assert_eq!(site.to_string().parse(), Ok(site));
    }
    for &product in Product::ALL {
        assert_eq!(product.name().parse(), Ok(product));
    }
    for &operand in Operand::ALL {
        assert_eq!(operand.name().parse(), Ok(operand));
    }
    for &place in Place::ALL {
        assert_eq!(place.name().parse(), Ok(place));
    }
    for &vector in Vector::ALL {
        assert_eq!(vector.name().parse(), Ok(vector));
    }
    let site = Site { layer: Some(3), operator: Operator::Q };
    assert_eq!(site.to_string(), "layers.3.q_proj");
}

#[test]
fn wrong_names_are_answered_with_the_right_ones() {
    let error = "fprop".parse::<Product>().unwrap_err().to_string();
    assert_eq!(error, "no product is called \"fprop\"; possible: forward grad_input grad_weight");
    let error = "q_prod".parse::<Operator>().unwrap_err();
    assert_eq!(error.nearest()[0], "q_proj");
    let wrong =
        ["q_proj", "layers.q_proj", "layers.01.q_proj", "layers.+1.q_proj", "layers.1.lm_head"];
    for text in wrong {
        let error = text.parse::<Site>().unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("down_proj"), "{error}");
    }
}

/// Each operand is read by exactly two of the three products.
#[test]
fn operands_of_the_products() {
    for operand in Operand::ALL {
        let readers = Product::ALL.iter().filter(|p| p.operands().contains(operand)).count();
        assert_eq!(readers, 2, "{operand}");
    }
}
