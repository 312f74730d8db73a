-- SPDX-License-Identifier: MIT
-- Work for an interpreter: sorting, strings, patterns, closures, collection. Its output is the same every time.
local t, sum = {}, 0
for round = 1, tonumber(arg[1]) do
	for i = 1, 2000 do
		t[i] = (i * 7919 + round) % 1009
	end
	table.sort(t)
	local parts = {}
	for i = 1, 200 do
		parts[#parts + 1] = string.format("%d:%s", t[i], tostring(i):rep(2))
	end
	local text = table.concat(parts, ","):gsub("%d+", function(digits)
		return digits + 1
	end)
	for word in text:gmatch("[^,]+") do
		sum = (sum * 31 + #word) % 1000003
	end
	if round % 20 == 0 then
		print(round, sum, #text)
	end
end
