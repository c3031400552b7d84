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

// printedURI is how a client on this machine reaches a server that listens on addr.
func printedURI(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return "http://" + addr.String()
}

// writeBanner says that the server is ready, and how each client reaches it; config says how they reach the warehouse's files.
func writeBanner(out io.Writer, uri string, warehouse catalog.Warehouse, config map[string]string) {
	spark := []string{
		"spark-sql --packages " + sparkRuntime,
		"--conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
		"--conf spark.sql.catalog.moorage=org.apache.iceberg.spark.SparkCatalog",
		"--conf spark.sql.catalog.moorage.type=rest",
		"--conf spark.sql.catalog.moorage.uri=" + uri,
		"--conf spark.sql.catalog.moorage.warehouse=" + warehouse.Name,
	}
	trino := []string{
		"connector.name=iceberg",
		"iceberg.catalog.type=rest",
		"iceberg.rest-catalog.uri=" + uri,
		"iceberg.rest-catalog.warehouse=" + warehouse.Name,
		"iceberg.rest-catalog.nested-namespace-enabled=true",
	}
	keys, delegation := "", ""
	if isInS3(warehouse.Location) {
		spark[0] += "," + sparkAWS
		keys = `, **{"s3.access-key-id": "…", "s3.secret-access-key": "…"}`
		// Otherwise DuckDB takes what the server tells about the endpoint for credentials.
		delegation = ", ACCESS_DELEGATION_MODE 'none'"
		trino = append(trino, trinoS3(config)...)
	} else {
		spark = append(spark, "--conf spark.sql.catalog.moorage.io-impl=org.apache.iceberg.hadoop.HadoopFileIO")
		trino = append(trino, "fs.native-local.enabled=true", "local.location=/")
	}
	fmt.Fprintf(out, `Moorage is ready at %[1]s
Warehouse %[2]s is at %[3]s

curl
  curl -s '%[1]s/v1/config?warehouse=%[2]s'

PyIceberg
  from pyiceberg.catalog import load_catalog
  catalog = load_catalog("moorage", type="rest", uri="%[1]s", warehouse="%[2]s"%[5]s)

Spark
  %[4]s

Trino, etc/catalog/moorage.properties
  %[7]s

DuckDB
  INSTALL iceberg; LOAD iceberg;
  ATTACH '%[2]s' AS moorage (TYPE ICEBERG, ENDPOINT '%[1]s', AUTHORIZATION_TYPE 'none', SUPPORT_NESTED_NAMESPACES true%[6]s);

`, uri, warehouse.Name, warehouse.Location, strings.Join(spark, " \\\n    "), keys, delegation, strings.Join(trino, "\n  "))
}

// trinoS3 returns the properties of a catalog of Trino's for files in S3: unlike other clients it does not heed what the server answers
// about them.
func trinoS3(config map[string]string) []string {
	properties := []string{"fs.native-s3.enabled=true"}
	for _, name := range []string{s3.OptionEndpoint, s3.OptionRegion, s3.OptionPathStyle} {
		if value := config[name]; value != "" {
			properties = append(properties, name+"="+value)
		}
	}
	return append(properties, "s3.aws-access-key=…", "s3.aws-secret-key=…")
}
