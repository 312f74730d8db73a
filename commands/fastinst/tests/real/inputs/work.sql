-- SPDX-License-Identifier: MIT
-- What "measure" has SQLite do: inserts, an index, joins, sums, sorting, updates and deletes.
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price INTEGER, kind INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO item SELECT i, printf('item %d', i * 7919 % 60000), i * 104729 % 1000, i % 37 FROM n;
CREATE INDEX by_price ON item (price, kind);
SELECT kind, count(*), sum(price), min(name), max(name) FROM item GROUP BY kind ORDER BY kind;
SELECT count(*) FROM item a JOIN item b ON b.price = a.price AND b.kind = a.kind AND b.id > a.id;
SELECT name, price FROM item WHERE name LIKE '%77%' ORDER BY price DESC, name LIMIT 20;
UPDATE item SET price = price + 1 WHERE kind % 2 = 0;
DELETE FROM item WHERE id % 3 = 0;
SELECT count(*), sum(price), sum(length(name)), avg(price) FROM item;
SELECT group_concat(name, ',') FROM (SELECT name FROM item ORDER BY name LIMIT 50);
PRAGMA integrity_check;
DROP TABLE item;
