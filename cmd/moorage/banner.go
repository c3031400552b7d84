package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"moorage/catalog/warehouses"
	"moorage/internal/cli"
	"moorage/storage"
	"moorage/storage/s3"
)

// sparkRuntime is the Maven coordinate that the printed Spark line uses.
const sparkRuntime = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

// Spark needs the coordinate sparkAWS in addition for warehouses in S3, and sparkGCP for warehouses
// in Google Cloud Storage.
const (
	sparkAWS = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
	sparkGCP = "org.apache.iceberg:iceberg-gcp-bundle:1.12.0"
	// sparkAzure is the coordinate for warehouses in Azure.
	sparkAzure = "org.apache.iceberg:iceberg-azure-bundle:1.12.0"
)

// flinkJars are the Maven coordinates in the printed lines for Flink.
const flinkJars = "org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0, org.apache.hadoop:hadoop-client-runtime:3.4.3"

// Flink needs the coordinate flinkAWS in addition for warehouses in S3, and flinkGCP for warehouses
// in Google Cloud Storage.
const (
	flinkAWS = "org.apache.iceberg:iceberg-aws-bundle:1.11.0"
	flinkGCP = "org.apache.iceberg:iceberg-gcp-bundle:1.11.0"
	// flinkAzure is the coordinate for warehouses in Azure.
	flinkAzure = "org.apache.iceberg:iceberg-azure-bundle:1.11.0"
)

// printedURI returns the address for clients of a server that listens on addr. Its host is the host
// of --listen. If --listen means all addresses, its host is the first name of --host, or this
// machine's name if there is no --host.
func printedURI(c cli.Config, addr net.Addr, encrypted bool) string {
	scheme := "http://"
	if encrypted {
		scheme = "https://"
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return scheme + addr.String()
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); host == "" || ip != nil {
		host = tcp.IP.String()
	}
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
		if len(c.Hosts) > 0 {
			host = c.Hosts[0]
		}
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// shown is the kind of credential that clients send: the placeholder for it in the banner.
type shown string

const (
	shownNothing shown = ""
	shownKey     shown = "KEY"   // an API key
	shownToken   shown = "TOKEN" // a token of an external issuer
)

// shownTo returns the kind of credential that all clients of a server can send, if there is one.
func shownTo(c cli.Config) shown {
	switch {
	case c.APIKeys:
		return shownKey
	case len(c.Issuers) > 0:
		return shownToken
	}
	return shownNothing
}

// property returns the property of PyIceberg, Spark and Flink for the credential.
func (s shown) property() string {
	if s == shownKey {
		return "credential"
	}
	return "token"
}

// writeBanner prints how each client connects to the server. The last line has the address of the
// ready server, so that it stays visible. config has the settings with which clients access the
// warehouse's files.
func writeBanner(out io.Writer, uri string, warehouse warehouses.Warehouse, config map[string]string, who shown) {
	name, scheme := warehouse.Name, schemeOf(warehouse.Location)
	show := func(client string, lines ...string) {
		fmt.Fprintf(out, "%s\n  %s\n\n", client, strings.Join(lines, "\n  "))
	}
	show("curl", curlLine(uri, name, who))
	show("PyIceberg", pyIcebergLines(uri, name, scheme, who)...)
	show("Spark", strings.Join(sparkOptions(uri, name, scheme, who), " \\\n    "))
	show("Trino, etc/catalog/moorage.properties", trinoProperties(uri, name, scheme, config, who)...)
	show("Flink SQL, with "+flinkNeeds(scheme), flinkStatement(uri, name, scheme, who))
	show("DuckDB", duckDBLines(uri, name, scheme, who)...)
	fmt.Fprintf(out, "Warehouse %s is at %s\nMoorage is ready at %s\n", name, warehouse.Location, uri)
}

func curlLine(uri, warehouse string, who shown) string {
	header := ""
	if who != shownNothing {
		header = fmt.Sprintf(" -H 'Authorization: Bearer %s'", who)
	}
	return fmt.Sprintf("curl -s%s '%s/v1/config?warehouse=%s'", header, uri, warehouse)
}

func pyIcebergLines(uri, warehouse string, scheme string, who shown) []string {
	keys := ""
	if who != shownNothing {
		keys = fmt.Sprintf(`, %s="%s"`, who.property(), who)
	}
	switch scheme {
	case storage.SchemeS3:
		keys += `, **{"s3.access-key-id": "…", "s3.secret-access-key": "…"}`
	case storage.SchemeAzure:
		keys += `, **{"adls.account-key": "…"}`
	}
	return []string{
		"from pyiceberg.catalog import load_catalog",
		fmt.Sprintf(`catalog = load_catalog("moorage", type="rest", uri="%s", warehouse="%s"%s)`, uri, warehouse, keys),
	}
}

func sparkOptions(uri, warehouse string, scheme string, who shown) []string {
	options := []string{
		"spark-sql --packages " + sparkRuntime,
		"--conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
		"--conf spark.sql.catalog.moorage=org.apache.iceberg.spark.SparkCatalog",
		"--conf spark.sql.catalog.moorage.type=rest",
		"--conf spark.sql.catalog.moorage.uri=" + uri,
		"--conf spark.sql.catalog.moorage.warehouse=" + warehouse,
	}
	if who != shownNothing {
		options = append(options, fmt.Sprintf("--conf spark.sql.catalog.moorage.%s=%s", who.property(), who))
	}
	if who == shownKey {
		options = append(options, "--conf spark.sql.catalog.moorage.oauth2-server-uri="+tokenEndpoint(uri))
	}
	switch scheme {
	case storage.SchemeS3:
		options[0] += "," + sparkAWS
	case storage.SchemeGCS:
		options[0] += "," + sparkGCP
	case storage.SchemeAzure:
		options[0] += "," + sparkAzure
	default:
		options = append(options, "--conf spark.sql.catalog.moorage.io-impl=org.apache.iceberg.hadoop.HadoopFileIO")
	}
	return options
}

// trinoProperties returns the properties of a catalog in Trino. Unlike other clients, Trino ignores
// the server's answers about files in S3 and Google Cloud Storage.
func trinoProperties(uri, warehouse string, scheme string, config map[string]string, who shown) []string {
	properties := []string{
		"connector.name=iceberg",
		"iceberg.catalog.type=rest",
		"iceberg.rest-catalog.uri=" + uri,
		"iceberg.rest-catalog.warehouse=" + warehouse,
		"iceberg.rest-catalog.nested-namespace-enabled=true",
	}
	if who != shownNothing {
		properties = append(properties, "iceberg.rest-catalog.security=OAUTH2",
			fmt.Sprintf("iceberg.rest-catalog.oauth2.%s=%s", who.property(), who))
	}
	switch scheme {
	case storage.SchemeGCS:
		return append(properties, "fs.native-gcs.enabled=true", "gcs.json-key-file-path=…")
	case storage.SchemeAzure:
		return append(properties, "fs.native-azure.enabled=true", "azure.auth-type=ACCESS_KEY", "azure.access-key=…")
	case storage.SchemeFile:
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
func flinkNeeds(scheme string) string {
	switch scheme {
	case storage.SchemeS3:
		return flinkJars + ", " + flinkAWS
	case storage.SchemeGCS:
		return flinkJars + ", " + flinkGCP
	case storage.SchemeAzure:
		return flinkJars + ", " + flinkAzure
	}
	return flinkJars
}

func flinkStatement(uri, warehouse string, scheme string, who shown) string {
	more := ""
	if who != shownNothing {
		more = fmt.Sprintf(", '%s' = '%s'", who.property(), who)
	}
	if who == shownKey {
		more += fmt.Sprintf(", 'oauth2-server-uri' = '%s'", tokenEndpoint(uri))
	}
	if scheme == storage.SchemeFile {
		more += ", 'io-impl' = 'org.apache.iceberg.hadoop.HadoopFileIO'"
	}
	return fmt.Sprintf("CREATE CATALOG moorage WITH ('type' = 'iceberg', 'catalog-type' = 'rest', "+
		"'uri' = '%s', 'warehouse' = '%s'%s);", uri, warehouse, more)
}

func duckDBLines(uri, warehouse string, scheme string, who shown) []string {
	lines := []string{"INSTALL iceberg; LOAD iceberg;"}
	options := "AUTHORIZATION_TYPE 'none'"
	if who != shownNothing {
		lines = append(lines, fmt.Sprintf("CREATE SECRET moorage_secret (TYPE ICEBERG, TOKEN '%s');", who))
		options = "SECRET moorage_secret"
	}
	if scheme != storage.SchemeFile { // otherwise DuckDB mistakes the endpoint in the server's answer for credentials
		options += ", ACCESS_DELEGATION_MODE 'none'"
	}
	return append(lines, fmt.Sprintf("ATTACH '%s' AS moorage (TYPE ICEBERG, ENDPOINT '%s', "+
		"SUPPORT_NESTED_NAMESPACES true, %s);", warehouse, uri, options))
}

// tokenEndpoint is the URL where clients get a token for a key.
func tokenEndpoint(uri string) string { return uri + "/v1/oauth/tokens" }
