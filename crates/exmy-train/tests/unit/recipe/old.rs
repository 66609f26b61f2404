use exmy::text::old::{former, modern};
use exmy_train::recipe::Recipe;
use exmy_train::recipe::old::renamed;

#[test]
fn elements_of_a_bundle_are_no_formats() {
    for (old, new) in [
        ("e4m3", "e4m3-ieee"),
        ("e4m3fn@rtz", "e4m3@rtz"),
        (
            "bf16>e4m3fn+out=e4m3+last1:weight=e4m3/32:e8m0",
            "bf16>e4m3+out=e4m3-ieee+last1:weight=e4m3-ieee/32:e8m0",
        ),
        ("mxpaper-e4m3+w=e4m3+a-bp=e4m3", "mxpaper-e4m3+w=e4m3+a-bp=e4m3"),
        ("e2m1/8:ue4m3+tensor+out=e4m3fn", "e2m1/8:ue4m3+tensor+out=e4m3"),
        ("mxfp8-e4m3@sr8", "mxfp8-e4m3@sr8"),
    ] {
        let read: Recipe = renamed(old, modern).parse().unwrap();
        assert_eq!(read.as_str(), new);
        assert_eq!(renamed(new, former), old);
    }
}
