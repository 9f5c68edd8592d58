"""Every constraint of a site, looked at over whole tables: nothing is believed that the write step says of itself.

Values are compared as PostgreSQL's own checks compare them: by the operators that the catalogue names.
"""

from tests.given.site import Site

_FOREIGN_KEYS = """
SELECT k.conname, format('SELECT count(*) FROM %s c WHERE %s AND NOT EXISTS (SELECT 1 FROM %s p WHERE %s)',
         k.conrelid::regclass, string_agg(format('c.%I IS NOT NULL', c.attname), ' AND '), k.confrelid::regclass,
         string_agg(format('p.%I%s OPERATOR(%I.%s) c.%I', p.attname, CASE WHEN p.attcollation <> 0
                             THEN ' COLLATE ' || p.attcollation::regcollation END,
                           n.nspname, o.oprname, c.attname), ' AND '))
  FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey, k.confkey, k.conpfeqop) u (ours, theirs, operator)
  JOIN pg_attribute c ON (c.attrelid, c.attnum) = (k.conrelid, u.ours)
  JOIN pg_attribute p ON (p.attrelid, p.attnum) = (k.confrelid, u.theirs)
  JOIN pg_operator o ON o.oid = u.operator JOIN pg_namespace n ON n.oid = o.oprnamespace
 WHERE k.contype = 'f' GROUP BY k.oid, k.conname, k.conrelid, k.confrelid ORDER BY 1"""

_DEFERRABLE = """
SELECT k.conname, format('SELECT count(*) FROM (SELECT 1 FROM %s WHERE %s GROUP BY %s HAVING count(*) > 1) x',
         k.conrelid::regclass, string_agg(format('%I IS NOT NULL', c.attname), ' AND '),
         string_agg(format('%I', c.attname), ', '))
  FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey) u (ours)
  JOIN pg_attribute c ON (c.attrelid, c.attnum) = (k.conrelid, u.ours)
 WHERE k.contype = 'u' AND k.condeferrable GROUP BY k.oid, k.conname, k.conrelid ORDER BY 1"""


def broken(site: Site) -> list[str]:
    """The constraints that some row breaks. All others are the database's own, replica role or not: their indexes
    and checks are never silent."""
    queries = site.rows(_FOREIGN_KEYS) + site.rows(_DEFERRABLE)
    return [f"{site.name}: {name}" for name, query in queries if site.value(query)]
