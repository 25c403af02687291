//! The files of the page, as they are in `web/`.

/// A file of the page.
pub struct Asset {
    /// Its name in the address.
    pub name: &'static str,
    /// The content.
    pub text: &'static str,
}

macro_rules! assets {
    ($($name:literal)+) => {
        [$(Asset { name: $name, text: include_str!(concat!("../web/", $name)) }),+]
    };
}

/// Every file. Scripts are in an order in which each only needs those before it.
pub static ASSETS: [Asset; 18] = assets! {
    "index.html" "style.css" "dom.js" "colour.js" "kernel.js" "backend.js" "view.js" "scatter.js" "axes.js" "value.js"
        "chart.js" "map.js" "figure.js" "path.js" "space.js" "regression.js" "series.js" "main.js"
};

/// The file of that name.
pub fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|a| a.name == name)
}

/// The scripts, in their order.
pub fn scripts() -> impl Iterator<Item = &'static Asset> {
    ASSETS.iter().filter(|a| a.name.ends_with(".js"))
}
