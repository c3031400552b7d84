//! Uses tables with iceberg-rust and its client of REST catalogs, for the tests of this folder.
//!
//! Tables are in a folder: the library reads and writes the local disk without a further crate, and nothing else. They
//! have two columns of 64 bits, `writer` and `number`. A command that fails prints the library's error, and ends with
//! status 1.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use futures::TryStreamExt;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::io::LocalFsStorageFactory;
use iceberg::spec::{DataFile, DataFileFormat};
use iceberg::table::Table;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::ParquetWriterBuilder;
use iceberg::writer::file_writer::location_generator::{DefaultFileNameGenerator, DefaultLocationGenerator};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::{IcebergWriter, IcebergWriterBuilder};
use iceberg::{Catalog, CatalogBuilder, TableIdent};
use iceberg_catalog_rest::{REST_CATALOG_PROP_URI, REST_CATALOG_PROP_WAREHOUSE, RestCatalog, RestCatalogBuilder};
use uuid::Uuid;

const USAGE: &str = "\
append URI WAREHOUSE TABLE WRITER COUNT   adds the rows of a writer whose numbers are below COUNT, each by a commit of its own
expire URI WAREHOUSE TABLE                expires all snapshots but the last
rows   URI WAREHOUSE TABLE                prints the rows, each as two numbers in a line, in no order

TABLE is the names of a namespace and of a table in it, with a point between.";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["append", uri, warehouse, table, writer, count] => {
            let (writer, count) = (writer.parse()?, count.parse()?);
            append(&connect(uri, warehouse).await?, &named(table)?, writer, count).await
        }
        ["expire", uri, warehouse, table] => expire(&connect(uri, warehouse).await?, &named(table)?).await,
        ["rows", uri, warehouse, table] => print_rows(&connect(uri, warehouse).await?, &named(table)?).await,
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2)
        }
    }
}

/// Makes a client of the catalog at `uri`. It asks nothing yet.
async fn connect(uri: &str, warehouse: &str) -> Result<RestCatalog> {
    let properties = HashMap::from([
        (REST_CATALOG_PROP_URI.to_string(), uri.to_string()),
        (REST_CATALOG_PROP_WAREHOUSE.to_string(), warehouse.to_string()),
    ]);
    let builder = RestCatalogBuilder::default().with_storage_factory(Arc::new(LocalFsStorageFactory));
    Ok(builder.load("ice", properties).await?)
}

fn named(table: &str) -> Result<TableIdent> {
    Ok(TableIdent::from_strs(table.split('.'))?)
}

/// Adds rows one by one. The library loads the table again before each commit, and tries again after a conflict as often
/// as the table's `commit.retry.num-retries` says.
async fn append(catalog: &RestCatalog, name: &TableIdent, writer: i64, count: i64) -> Result<()> {
    let mut table = catalog.load_table(name).await?;
    for number in 0..count {
        let files = write_row(&table, writer, number).await?;
        let transaction = Transaction::new(&table);
        let change = transaction.fast_append().add_data_files(files);
        table = change.apply(transaction)?.commit(catalog).await?;
    }
    Ok(())
}

/// Writes a data file of one row, which no snapshot has yet.
async fn write_row(table: &Table, writer: i64, number: i64) -> Result<Vec<DataFile>> {
    let schema = table.current_schema_ref();
    let columns = [writer, number].map(|value| Arc::new(Int64Array::from(vec![value])) as ArrayRef);
    let row = RecordBatch::try_new(Arc::new(schema_to_arrow_schema(&schema)?), columns.into())?;

    let properties = table.metadata().table_properties()?;
    let names = DefaultFileNameGenerator::new(Uuid::new_v4().to_string(), None, DataFileFormat::Parquet);
    let files = RollingFileWriterBuilder::new_with_default_file_size(
        ParquetWriterBuilder::from_table_properties(&properties, schema),
        table.file_io().clone(),
        DefaultLocationGenerator::new(table.metadata())?,
        names,
    );
    let mut file = DataFileWriterBuilder::new(files).build(None).await?;
    file.write(row).await?;
    Ok(file.close().await?)
}

/// Expires snapshots in the table's metadata. The library removes no files.
async fn expire(catalog: &RestCatalog, name: &TableIdent) -> Result<()> {
    let table = catalog.load_table(name).await?;
    let transaction = Transaction::new(&table);
    let change = transaction
        .expire_snapshots()
        .expire_older_than_ms(i64::MAX)
        .retain_last(1);
    change.apply(transaction)?.commit(catalog).await?;
    Ok(())
}

async fn print_rows(catalog: &RestCatalog, name: &TableIdent) -> Result<()> {
    let table = catalog.load_table(name).await?;
    let mut batches = table.scan().select(["writer", "number"]).build()?.to_arrow().await?;
    while let Some(batch) = batches.try_next().await? {
        let [writers, numbers] = [0, 1].map(|at| batch.column(at).as_primitive::<Int64Type>());
        for (writer, number) in writers.values().iter().zip(numbers.values()) {
            println!("{writer} {number}");
        }
    }
    Ok(())
}
