package main

import (
	"fmt"
	"io"
	"net"
	"strings"

	"moorage/catalog"
	"moorage/storage/s3"
)

// sparkRuntime is the Maven coordinate that the printed Spark line uses.
const sparkRuntime = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

// sparkAWS is that of what Spark needs beside it for warehouses in S3.
const sparkAWS = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"

// flinkJars are the Maven coordinates that the printed lines for Flink name.
const flinkJars = "org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0, org.apache.hadoop:hadoop-client-runtime:3.4.3"

// flinkAWS is that of what Flink needs beside them for warehouses in S3.
const flinkAWS = "org.apache.iceberg:iceberg-aws-bundle:1.11.0"

// printedURI is how a client on this machine reaches a server that listens on addr.
func printedURI(addr net.Addr, encrypted bool) string {
	scheme := "http://"
	if encrypted {
		scheme = "https://"
	}
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("%s127.0.0.1:%d", scheme, tcp.Port)
	}
	return scheme + addr.String()
}

// writeBanner says that the server is ready, and how each client reaches it. config says how
// clients reach the files of the warehouse.
func writeBanner(out io.Writer, uri string, warehouse catalog.Warehouse, config map[string]string) {
	name, inS3 := warehouse.Name, isInS3(warehouse.Location)
	fmt.Fprintf(out, "Moorage is ready at %s\nWarehouse %s is at %s\n\n", uri, name, warehouse.Location)
	show := func(client string, lines ...string) {
		fmt.Fprintf(out, "%s\n  %s\n\n", client, strings.Join(lines, "\n  "))
	}
	show("curl", fmt.Sprintf("curl -s '%s/v1/config?warehouse=%s'", uri, name))
	show("PyIceberg", pyIcebergLines(uri, name, inS3)...)
	show("Spark", strings.Join(sparkOptions(uri, name, inS3), " \\\n    "))
	show("Trino, etc/catalog/moorage.properties", trinoProperties(uri, name, inS3, config)...)
	show("Flink SQL, with "+flinkNeeds(inS3), flinkStatement(uri, name, inS3))
	show("DuckDB", duckDBLines(uri, name, inS3)...)
}

func pyIcebergLines(uri, warehouse string, inS3 bool) []string {
	keys := ""
	if inS3 {
		keys = `, **{"s3.access-key-id": "…", "s3.secret-access-key": "…"}`
	}
	return []string{
		"from pyiceberg.catalog import load_catalog",
		fmt.Sprintf(`catalog = load_catalog("moorage", type="rest", uri="%s", warehouse="%s"%s)`, uri, warehouse, keys),
	}
}

func sparkOptions(uri, warehouse string, inS3 bool) []string {
	options := []string{
		"spark-sql --packages " + sparkRuntime,
		"--conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
		"--conf spark.sql.catalog.moorage=org.apache.iceberg.spark.SparkCatalog",
		"--conf spark.sql.catalog.moorage.type=rest",
		"--conf spark.sql.catalog.moorage.uri=" + uri,
		"--conf spark.sql.catalog.moorage.warehouse=" + warehouse,
	}
	if inS3 {
		options[0] += "," + sparkAWS
		return options
	}
	return append(options, "--conf spark.sql.catalog.moorage.io-impl=org.apache.iceberg.hadoop.HadoopFileIO")
}

// trinoProperties returns the properties of a catalog in Trino. Unlike other clients Trino ignores
// what the server answers about files in S3.
func trinoProperties(uri, warehouse string, inS3 bool, config map[string]string) []string {
	properties := []string{
		"connector.name=iceberg",
		"iceberg.catalog.type=rest",
		"iceberg.rest-catalog.uri=" + uri,
		"iceberg.rest-catalog.warehouse=" + warehouse,
		"iceberg.rest-catalog.nested-namespace-enabled=true",
	}
	if !inS3 {
		return append(properties, "fs.native-local.enabled=true", "local.location=/")
	}
	properties = append(properties, "fs.native-s3.enabled=true")
	for _, name := range []string{s3.OptionEndpoint, s3.OptionRegion, s3.OptionPathStyle} {
		if value := config[name]; value != "" {
			properties = append(properties, name+"="+value)
		}
	}
	return append(properties, "s3.aws-access-key=…", "s3.aws-secret-key=…")
}

// flinkNeeds names the jars that Flink needs.
func flinkNeeds(inS3 bool) string {
	if inS3 {
		return flinkJars + ", " + flinkAWS
	}
	return flinkJars
}

func flinkStatement(uri, warehouse string, inS3 bool) string {
	fileIO := ""
	if !inS3 {
		fileIO = ", 'io-impl' = 'org.apache.iceberg.hadoop.HadoopFileIO'"
	}
	return fmt.Sprintf("CREATE CATALOG moorage WITH ('type' = 'iceberg', 'catalog-type' = 'rest', "+
		"'uri' = '%s', 'warehouse' = '%s'%s);", uri, warehouse, fileIO)
}

func duckDBLines(uri, warehouse string, inS3 bool) []string {
	delegation := ""
	if inS3 { // otherwise DuckDB takes what the server tells about the endpoint for credentials
		delegation = ", ACCESS_DELEGATION_MODE 'none'"
	}
	return []string{
		"INSTALL iceberg; LOAD iceberg;",
		fmt.Sprintf("ATTACH '%s' AS moorage (TYPE ICEBERG, ENDPOINT '%s', AUTHORIZATION_TYPE 'none', "+
			"SUPPORT_NESTED_NAMESPACES true%s);", warehouse, uri, delegation),
	}
}
