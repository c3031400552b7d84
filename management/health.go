package management

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/browse"
	"moorage/internal/web"
	"moorage/management/client"
)

// loadHealth answers with the state of a table.
func (s *server) loadHealth(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	ident, err := tableOfQuery(q)
	if err != nil {
		return err
	}
	deep, err := flagOf(q, "deep")
	if err != nil {
		return err
	}
	found, err := s.browse(r).Health(r.Context(), ident, deep)
	if err != nil {
		return err
	}
	health := client.Health{MetadataLocation: found.MetadataLocation, Level: client.LevelOK}
	if found.Snapshot >= 0 {
		health.Snapshot = found.Snapshot
	}
	for _, symptom := range found.Symptoms {
		health.Findings = append(health.Findings, client.HealthFinding{
			Level: string(symptom.Severity), What: symptom.What, Fact: symptom.Fact, Limit: symptom.Limit,
			Command: commandFor(symptom.Remedy, ident),
		})
		if symptom.Severity == browse.SeverityBad || health.Level == client.LevelOK {
			health.Level = string(symptom.Severity)
		}
	}
	if shape := found.Shape; shape != nil {
		health.Shape = &client.Shape{
			Stopped: shape.Stopped, Manifests: shape.Manifests, Files: shape.Files, Bytes: shape.Bytes,
			Rows: shape.Rows, Deletes: shape.Deletes, DeleteRows: shape.DeleteRows, Small: shape.Small,
			Sizes: each(shape.Sizes, func(class browse.SizeClass) client.SizeClass {
				return client.SizeClass(class)
			}),
			ByRows: each(shape.ByRows, countClassOf), ByFiles: each(shape.ByFiles, countClassOf),
			Partitions: shape.Partitions, Lone: shape.Lone, Worst: each(shape.Worst, partitionOf),
		}
	}
	return s.AnswerJSON(w, r, health)
}

func countClassOf(class browse.CountClass) client.CountClass { return client.CountClass(class) }

func partitionOf(p browse.PartitionShape) client.PartitionShape {
	return client.PartitionShape{
		Partition: p.Name, Files: p.Files, Bytes: p.Bytes, Rows: p.Rows, Small: p.Small, Deletes: p.Deletes,
	}
}

// commandFor returns the remedy as text to type: a command, or SQL for Spark.
func commandFor(remedy browse.Remedy, ident moorage.Identifier) string {
	object := objectCalled(ident)
	switch remedy {
	case browse.RemedyCompact:
		return maintainCommand(object, "compaction")
	case browse.RemedyExpire:
		return maintainCommand(object, "snapshots")
	case browse.RemedyManifests:
		return fmt.Sprintf("CALL %s.system.rewrite_manifests(%s)", sparkCatalog, sqlText(sqlName(ident)))
	case browse.RemedyPartitions:
		return fmt.Sprintf("ALTER TABLE %s.%s REPLACE PARTITION FIELD days(COLUMN) WITH months(COLUMN)", sparkCatalog,
			sqlName(ident))
	case browse.RemedyLocation:
		return "moorage warehouse change " + moorage.ShellWord(ident.Warehouse) + " --allow-location LOCATION"
	case browse.RemedyRollback:
		return "moorage rollback " + moorage.ShellWord(ident.PersonName()) + " now~1"
	}
	return ""
}

// maintainCommand returns the command that switches on a kind of maintenance for an object.
func maintainCommand(object client.Object, kind string) string {
	_, name, _ := strings.Cut(object.String(), " ")
	return fmt.Sprintf("moorage maintain set table %s %s on", moorage.ShellWord(name), kind)
}

// sparkCatalog is the name of the catalog in statements for Spark, as in the lines of moorage
// connect.
const sparkCatalog = "moorage"

// plainSQL matches the names that need no quotes in Spark.
var plainSQL = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// sqlName returns the name of a table in its catalog, quoted for Spark.
func sqlName(ident moorage.Identifier) string {
	levels := append(slices.Clone(ident.Namespace), ident.Name)
	for i, level := range levels {
		if !plainSQL.MatchString(level) {
			levels[i] = "`" + strings.ReplaceAll(level, "`", "``") + "`"
		}
	}
	return strings.Join(levels, ".")
}

// sqlText returns a text as a literal of Spark's SQL.
func sqlText(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
