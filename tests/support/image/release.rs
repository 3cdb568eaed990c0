//! The images of a release: each beside the list of what its program is made of, and of the size that it should be.

use super::{Image, sbom};
use crate::cargo;
use anyhow::{Context, Result, ensure};
use std::{env, fs, path::Path};

/// Programs of the product with the least and the most megabytes that each may have. Who makes one smaller moves the window down.
const WINDOWS: [(&str, u64, u64); 3] = [
    ("agents", 20, 45),
    ("agents-webhook", 20, 28),
    ("agents-sidecar", 12, 18),
];

/// Writes the images of the release builds into a folder and says how large they are.
pub fn write(folder: &Path) -> Result<()> {
    let target = env::var_os("CARGO_BUILD_TARGET").unwrap_or_default();
    let built = cargo::target_folder().join(target).join("release");
    fs::create_dir_all(folder)?;
    let mut faults = Vec::new();
    for (name, least, most) in WINDOWS {
        let program = built.join(name);
        let list = sbom::of_program(&program)?;
        let crates = list["components"].as_array().map_or(0, Vec::len);
        fs::write(
            folder.join(format!("{name}.cdx.json")),
            serde_json::to_vec_pretty(&list)?,
        )?;
        let archive = folder.join(format!("{name}.tar"));
        Image::of_product(&format!("localhost/{name}:release"), &program)?.write(&archive)?;
        let size = |file: &Path| fs::metadata(file).map(|about| about.len());
        let bytes = size(&program).with_context(|| format!("{name} is not built"))?;
        let (program, image) = (spoken(bytes), spoken(size(&archive)?));
        println!("{name}: {program} MB, as an image {image} MB, made of {crates} crates");
        if !(least * 1_000_000..=most * 1_000_000).contains(&bytes) {
            faults.push(format!(
                "{name} has {program} MB and should have {least} to {most}"
            ));
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

/// Megabytes with one digit behind the point.
fn spoken(bytes: u64) -> String {
    let tenths = bytes / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_spoken_in_megabytes() {
        assert_eq!(spoken(16_549_999), "16.5");
        assert_eq!(spoken(99_999), "0.0");
    }
}
