-- SPDX-License-Identifier: MIT
CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60000)
INSERT INTO t SELECT i, (i * 7919) % 10007, printf('row %d of %x', i, i * 2654435761 % 4294967296) FROM c;
CREATE INDEX ta ON t(a);
SELECT count(*), sum(a), max(b) FROM t;
SELECT a % 10, count(*), group_concat(substr(b, 5, 3)) FROM t WHERE a < 300 GROUP BY a % 10 ORDER BY 1;
SELECT sum(length(replace(upper(b), 'ROW', 'line'))) FROM t WHERE b LIKE '%a%';
UPDATE t SET b = b || a WHERE a BETWEEN 100 AND 4000;
SELECT x.a, count(*) FROM t x JOIN t y ON x.a = y.a WHERE x.id < 2000 GROUP BY x.a ORDER BY 2 DESC, 1 LIMIT 20;
DELETE FROM t WHERE a % 3 = 1;
SELECT count(*), sum(length(b)) FROM t;
DROP TABLE t;
