package main

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/storage"
	"moorage/storage/s3"
)

// sparkRuntime is the Maven coordinate in the printed line for Spark.
const sparkRuntime = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

// Spark also needs the coordinate sparkAWS for warehouses in S3, and sparkGCP for warehouses in
// Google Cloud Storage.
const (
	sparkAWS = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
	sparkGCP = "org.apache.iceberg:iceberg-gcp-bundle:1.12.0"
	// sparkAzure is the coordinate for warehouses in Azure.
	sparkAzure = "org.apache.iceberg:iceberg-azure-bundle:1.12.0"
)

// flinkJars are the Maven coordinates in the printed lines for Flink.
const flinkJars = "org.apache.iceberg:iceberg-flink-runtime-2.1:1.11.0, org.apache.hadoop:hadoop-client-runtime:3.4.3"

// Flink also needs the coordinate flinkAWS for warehouses in S3, and flinkGCP for warehouses in
// Google Cloud Storage.
const (
	flinkAWS = "org.apache.iceberg:iceberg-aws-bundle:1.11.0"
	flinkGCP = "org.apache.iceberg:iceberg-gcp-bundle:1.11.0"
	// flinkAzure is the coordinate for warehouses in Azure.
	flinkAzure = "org.apache.iceberg:iceberg-azure-bundle:1.11.0"
)

// shown is the kind of credential that clients send. Its value is the placeholder in printed lines.
type shown string

const (
	shownNothing shown = ""
	shownKey     shown = "KEY"   // an API key
	shownToken   shown = "TOKEN" // a token of an external issuer
)

// shownTo returns the kind of credential that all clients of a server can send. It returns "" if
// there is no such kind.
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

// connection has the facts that the templates of engines need: the catalog, and how an engine
// reaches it.
type connection struct {
	uri, warehouse string
	as             string // the name of the catalog in the engine
	scheme         string // of the location of the warehouse
	config         map[string]string
	who            shown
	// table is the levels and the name of a table to read. If it is nil, the lines end with the
	// connection.
	table []string
}

// catalogName is the name of the catalog in printed lines, except in the lines of the demo.
const catalogName = "moorage"

// template has the lines with which an engine connects. It is the only source of such lines: the
// banner of serve, the demo, moorage connect and docs/guide/engines.md all use it.
type template struct {
	name     string // operand of moorage connect
	title    func(c connection) string
	lines    func(c connection) []string
	isBanner bool // printed by serve when it starts
}

// engines returns the template of every engine, in the order of the banner.
func engines() []template {
	titled := func(title string) func(connection) string {
		return func(connection) string { return title }
	}
	return []template{
		{"curl", titled("curl"), connection.curl, true},
		{"pyiceberg", titled("PyIceberg"), connection.pyIceberg, true},
		{"spark", titled("Spark"), connection.spark, true},
		{"trino", connection.trinoFile, connection.trino, true},
		{"flink", connection.flinkTitle, connection.flink, true},
		{"duckdb", titled("DuckDB"), connection.duckDB, true},
		{"polars", titled("Polars"), connection.polars, false},
	}
}

func (c connection) curl() []string {
	header := ""
	if c.who != shownNothing {
		header = fmt.Sprintf(" -H 'Authorization: Bearer %s'", c.who)
	}
	if c.table == nil {
		return []string{fmt.Sprintf("curl -s%s '%s/v1/config?warehouse=%s'", header, c.uri,
			url.QueryEscape(c.warehouse))}
	}
	last := len(c.table) - 1
	path := client.TablePath(c.warehouse, c.table[:last], c.table[last])
	return []string{fmt.Sprintf("curl -s%s '%s%s'", header, c.uri, path)}
}

func (c connection) pyIceberg() []string {
	keys := ""
	if c.who != shownNothing {
		keys = fmt.Sprintf(`, %s="%s"`, c.who.property(), c.who)
	}
	switch c.scheme {
	case storage.SchemeS3:
		keys += `, **{"s3.access-key-id": "…", "s3.secret-access-key": "…"}`
	case storage.SchemeAzure:
		keys += `, **{"adls.account-key": "…"}`
	}
	lines := []string{
		"from pyiceberg.catalog import load_catalog",
		fmt.Sprintf(`catalog = load_catalog("%s", type="rest", uri="%s", warehouse=%q%s)`,
			c.as, c.uri, c.warehouse, keys),
	}
	if c.table != nil {
		lines = append(lines,
			fmt.Sprintf("print(catalog.load_table(%s).scan(limit=10).to_arrow())", pythonName(c.table)))
	}
	return lines
}

func (c connection) polars() []string {
	table := c.table
	c.table = nil
	lines := append([]string{"import polars as pl"}, c.pyIceberg()...)
	if table != nil {
		lines = append(lines,
			fmt.Sprintf("print(pl.scan_iceberg(catalog.load_table(%s)).head(10).collect())", pythonName(table)))
	}
	return lines
}

// pythonName returns the name of a table in the form for PyIceberg: a string, or a tuple if a level
// contains a dot.
func pythonName(levels []string) string {
	quoted := make([]string, len(levels))
	isPlain := true
	for i, level := range levels {
		quoted[i] = fmt.Sprintf("%q", level)
		isPlain = isPlain && !strings.Contains(level, ".")
	}
	if isPlain {
		return fmt.Sprintf("%q", strings.Join(levels, "."))
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}

// spark returns one command line, broken into several lines where a shell allows it.
func (c connection) spark() []string {
	prefix := "--conf spark.sql.catalog." + c.as
	options := []string{
		"spark-sql --packages " + sparkRuntime,
		"--conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
		prefix + "=org.apache.iceberg.spark.SparkCatalog",
		prefix + ".type=rest",
		prefix + ".uri=" + c.uri,
		prefix + ".warehouse=" + moorage.ShellWord(c.warehouse),
	}
	if c.who != shownNothing {
		options = append(options, fmt.Sprintf("%s.%s=%s", prefix, c.who.property(), c.who))
	}
	if c.who == shownKey {
		options = append(options, prefix+".oauth2-server-uri="+tokenEndpoint(c.uri))
	}
	switch c.scheme {
	case storage.SchemeS3:
		options[0] += "," + sparkAWS
	case storage.SchemeGCS:
		options[0] += "," + sparkGCP
	case storage.SchemeAzure:
		options[0] += "," + sparkAzure
	default:
		options = append(options, prefix+".io-impl=org.apache.iceberg.hadoop.HadoopFileIO")
	}
	if c.table != nil {
		query := fmt.Sprintf("SELECT * FROM %s LIMIT 10", c.sqlName("`", true))
		options = append(options, "-e "+moorage.ShellWord(query))
	}
	for i := range options[:len(options)-1] {
		options[i] += " \\"
	}
	for i := range options[1:] {
		options[i+1] = "  " + options[i+1]
	}
	return options
}

func (c connection) trinoFile() string { return "Trino, etc/catalog/" + c.as + ".properties" }

// trino returns the properties of a catalog in Trino. Unlike other clients, Trino ignores the
// server's answers about files in S3 and Google Cloud Storage.
func (c connection) trino() []string {
	properties := []string{
		"connector.name=iceberg",
		"iceberg.catalog.type=rest",
		"iceberg.rest-catalog.uri=" + c.uri,
		"iceberg.rest-catalog.warehouse=" + propertyText(c.warehouse),
		"iceberg.rest-catalog.nested-namespace-enabled=true",
	}
	if c.who != shownNothing {
		properties = append(properties, "iceberg.rest-catalog.security=OAUTH2",
			fmt.Sprintf("iceberg.rest-catalog.oauth2.%s=%s", c.who.property(), c.who))
	}
	switch c.scheme {
	case storage.SchemeGCS:
		properties = append(properties, "fs.native-gcs.enabled=true", "gcs.json-key-file-path=…")
	case storage.SchemeAzure:
		properties = append(properties,
			"fs.native-azure.enabled=true", "azure.auth-type=ACCESS_KEY", "azure.access-key=…")
	case storage.SchemeFile:
		properties = append(properties, "fs.native-local.enabled=true", "local.location=/")
	default:
		properties = append(properties, "fs.native-s3.enabled=true")
		for _, name := range []string{s3.OptionEndpoint, s3.OptionRegion, s3.OptionPathStyle} {
			if value := c.config[name]; value != "" {
				properties = append(properties, name+"="+propertyText(value))
			}
		}
		properties = append(properties, "s3.aws-access-key=…", "s3.aws-secret-key=…")
	}
	if c.table != nil {
		properties = append(properties, fmt.Sprintf("# SELECT * FROM %s LIMIT 10;", c.sqlName(`"`, false)))
	}
	return properties
}

// flinkNeeds returns the coordinates of the jars that Flink needs.
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

func (c connection) flinkTitle() string { return "Flink SQL, with " + flinkNeeds(c.scheme) }

func (c connection) flink() []string {
	more := ""
	if c.who != shownNothing {
		more = fmt.Sprintf(", '%s' = '%s'", c.who.property(), c.who)
	}
	if c.who == shownKey {
		more += fmt.Sprintf(", 'oauth2-server-uri' = '%s'", tokenEndpoint(c.uri))
	}
	if c.scheme == storage.SchemeFile {
		more += ", 'io-impl' = 'org.apache.iceberg.hadoop.HadoopFileIO'"
	}
	lines := []string{fmt.Sprintf("CREATE CATALOG %s WITH ('type' = 'iceberg', 'catalog-type' = 'rest', "+
		"'uri' = '%s', 'warehouse' = '%s'%s);", c.as, c.uri, sqlText(c.warehouse), more)}
	if c.table != nil {
		lines = append(lines, fmt.Sprintf("SELECT * FROM %s LIMIT 10;", c.sqlName("`", false)))
	}
	return lines
}

// duckDB returns the lines for DuckDB 1.5.5, where the option for the address is ENDPOINT.
func (c connection) duckDB() []string {
	lines := []string{"INSTALL iceberg; LOAD iceberg;"}
	options := "AUTHORIZATION_TYPE 'none'"
	if c.who != shownNothing {
		secret := c.as + "_secret"
		lines = append(lines, fmt.Sprintf("CREATE SECRET %s (TYPE ICEBERG, TOKEN '%s');", secret, c.who))
		options = "SECRET " + secret
	}
	if c.scheme != storage.SchemeFile {
		// Otherwise DuckDB mistakes the endpoint in the server's answer for credentials.
		options += ", ACCESS_DELEGATION_MODE 'none'"
	}
	lines = append(lines, fmt.Sprintf("ATTACH '%s' AS %s (TYPE ICEBERG, ENDPOINT '%s', "+
		"SUPPORT_NESTED_NAMESPACES true, %s);", sqlText(c.warehouse), c.as, c.uri, options))
	if c.table != nil {
		lines = append(lines, fmt.Sprintf("SELECT * FROM %s LIMIT 10;", c.sqlName(`"`, false)))
	}
	return lines
}

// plainName matches names that need no quotes in SQL.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// sqlName returns the table's name in SQL: the catalog, the namespace and the name. quote is the
// engine's quotation mark. If isNested is true, each level of the namespace is a separate name. In
// other engines, the levels are one name with dots.
func (c connection) sqlName(quote string, isNested bool) string {
	last := len(c.table) - 1
	parts := append([]string{c.as}, c.table...)
	if !isNested {
		parts = []string{c.as, strings.Join(c.table[:last], "."), c.table[last]}
	}
	for i, part := range parts {
		if !plainName.MatchString(part) {
			parts[i] = quote + strings.ReplaceAll(part, quote, quote+quote) + quote
		}
	}
	return strings.Join(parts, ".")
}

// sqlText escapes a text for use between the quotes of an SQL literal.
func sqlText(text string) string { return strings.ReplaceAll(text, "'", "''") }

// propertyText escapes the value of a property for a Java properties file.
func propertyText(value string) string { return strings.ReplaceAll(value, `\`, `\\`) }

// tokenEndpoint is the URL where clients get a token for a key.
func tokenEndpoint(uri string) string { return uri + "/v1/oauth/tokens" }
