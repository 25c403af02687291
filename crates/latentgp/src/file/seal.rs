//! A [`ModelFile`] as bytes, and its checksum.
//!
//! ```text
//! 8 bytes: length of the header │ {"__metadata__":{"latentgp":"{\"sha256\":\"……\",…}"},"x":{…}} │ arrays
//! ```
//!
//! The digest stands at a fixed place. It is computed with zeros there and written over them.

use super::{ModelFile, VERSION, damaged};
use crate::error::{Error, Result};
use crate::mat::Mat;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};

const KEY: &str = "latentgp";
/// What stands between the length of the header and the digest.
const BEFORE: &[u8] = b"{\"__metadata__\":{\"latentgp\":\"{\\\"sha256\\\":\\\"";
const START: usize = 8 + BEFORE.len();
const DIGITS: usize = 64;

/// The JSON under the one key; the digest is its first member.
#[derive(Serialize, Deserialize)]
struct Envelope {
    sha256: String,
    version: u32,
    kind: String,
    header: Value,
}

fn digest(bytes: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(&bytes[..START]);
    hash.update([b'0'; DIGITS]);
    hash.update(&bytes[START + DIGITS..]);
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

impl ModelFile {
    /// The file as bytes; the same content gives the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let fail = |e: &dyn std::fmt::Display| Error::data("model file", format!("cannot be written: {e}"));
        let envelope = Envelope {
            sha256: "0".repeat(DIGITS),
            version: VERSION,
            kind: self.kind.clone(),
            header: self.header.clone(),
        };
        let text = serde_json::to_string(&envelope).map_err(|e| fail(&e))?;
        let raw: Vec<(&str, Vec<u8>, [usize; 2])> = self
            .tensors
            .iter()
            .map(|(name, m)| {
                let bytes = m.as_slice().iter().flat_map(|v| v.to_le_bytes()).collect();
                (name.as_str(), bytes, [m.rows(), m.cols()])
            })
            .collect();
        let views = raw
            .iter()
            .map(|(name, bytes, shape)| Ok((*name, TensorView::new(Dtype::F64, shape.to_vec(), bytes)?)))
            .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>()
            .map_err(|e| fail(&e))?;
        let metadata = HashMap::from([(KEY.to_string(), text)]);
        let mut bytes = serialize(views, Some(metadata)).map_err(|e| fail(&e))?;
        debug_assert!(bytes[8..].starts_with(BEFORE));
        let sum = digest(&bytes);
        bytes[START..START + DIGITS].copy_from_slice(sum.as_bytes());
        Ok(bytes)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; errs when a single byte differs.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if !bytes.get(8..).is_some_and(|b| b.starts_with(BEFORE)) || bytes.len() < START + DIGITS {
            return Err(damaged(
                "is not a model file of this program, or its beginning is damaged; \
                 give a file that `--out` has written",
            ));
        }
        // The length comes first, as a truncated file is the most usual damage.
        let header = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
        if header > (bytes.len() - 8) as u64 {
            return Err(damaged("ends too early: the file is truncated; copy it again or fit again"));
        }
        if digest(bytes).as_bytes() != &bytes[START..START + DIGITS] {
            return Err(damaged(
                "does not match its checksum: the file is truncated or was altered; copy it again or fit again",
            ));
        }
        let fail = |e: &dyn std::fmt::Display| damaged(format!("its arrays cannot be read: {e}"));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| fail(&e))?;
        let text = metadata.metadata().as_ref().and_then(|m| m.get(KEY));
        let text = text.ok_or_else(|| damaged("has no header"))?;
        let version: Version = serde_json::from_str(text).map_err(|e| fail(&e))?;
        if version.version > VERSION {
            return Err(damaged(format!(
                "has format version {}, this program reads versions up to {VERSION}; use a newer latentgp",
                version.version
            )));
        }
        let envelope: Envelope = serde_json::from_str(text).map_err(|e| fail(&e))?;
        let arrays = SafeTensors::deserialize(bytes).map_err(|e| fail(&e))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in arrays.tensors() {
            let m = matrix(&view).map_err(|reason| damaged(format!("the array `{name}` {reason}")))?;
            tensors.insert(name, m);
        }
        Ok(ModelFile { kind: envelope.kind, header: envelope.header, tensors })
    }
}

/// What is read first, as a newer version may hold anything else.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

fn matrix(view: &TensorView<'_>) -> std::result::Result<Mat, String> {
    let (Dtype::F64, &[rows, cols]) = (view.dtype(), view.shape()) else {
        return Err(format!(
            "should be a matrix of F64, it is {:?} of shape {:?}",
            view.dtype(),
            view.shape()
        ));
    };
    let number = |b: &[u8]| f64::from_le_bytes(b.try_into().expect("8 bytes"));
    let data = view.data().chunks_exact(8).map(number).collect();
    Mat::from_vec(rows, cols, data).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn small() -> ModelFile {
        let header = json!({ "name": "q\"uo\\te \"sha256\":\"", "bound": -1.25e-7, "n": null });
        let mut file = ModelFile::new("example", header);
        file.tensors.insert("x".into(), Mat::from_rows(&[[1.0, -0.0], [1e-310, 2.0]]));
        file.tensors.insert("empty".into(), Mat::zeros(0, 3));
        file
    }

    fn reason(bytes: &[u8]) -> String {
        ModelFile::from_bytes(bytes).unwrap_err().to_string()
    }

    #[test]
    fn a_file_comes_back_to_the_bit_and_is_written_the_same_each_time() {
        let file = small();
        let bytes = file.to_bytes().unwrap();
        assert_eq!(ModelFile::from_bytes(&bytes).unwrap(), file);
        assert_eq!(bytes, file.to_bytes().unwrap());
        let mut nan = small();
        nan.tensors.insert("y".into(), Mat::filled(1, 1, f64::NAN));
        assert!(ModelFile::from_bytes(&nan.to_bytes().unwrap()).unwrap().tensors["y"][(0, 0)].is_nan());
    }

    #[test]
    fn every_truncation_and_every_flipped_bit_is_refused() {
        let bytes = small().to_bytes().unwrap();
        for end in 0..bytes.len() {
            assert!(matches!(ModelFile::from_bytes(&bytes[..end]), Err(Error::ModelFile { .. })), "{end}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(
                    matches!(ModelFile::from_bytes(&bad), Err(Error::ModelFile { .. })),
                    "byte {at} bit {bit}"
                );
            }
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(reason(&longer).contains("checksum"));
    }

    #[test]
    fn a_newer_version_and_foreign_files_say_so() {
        let bytes = small().to_bytes().unwrap();
        let place = bytes.windows(14).position(|w| w == b"\\\"version\\\":1,").unwrap();
        let mut newer = bytes.clone();
        newer[place + 12] = b'2';
        assert!(reason(&newer).contains("checksum"));
        let sum = digest(&newer);
        newer[START..START + DIGITS].copy_from_slice(sum.as_bytes());
        assert!(reason(&newer).contains("format version 2") && reason(&newer).contains("newer latentgp"));
        for foreign in [&b""[..], b"x,y\n1,2\n", &[0; 400]] {
            assert!(reason(foreign).contains("not a model file"), "{}", reason(foreign));
        }
    }

    #[test]
    fn arrays_of_another_kind_are_refused() {
        let view = TensorView::new(Dtype::F64, vec![1], &[0; 8]).unwrap();
        assert!(matrix(&view).unwrap_err().contains("matrix of F64"));
        let view = TensorView::new(Dtype::F32, vec![1, 1], &[0; 4]).unwrap();
        assert!(matrix(&view).is_err());
    }
}
