module github.com/subosito/gotenv

go 1.26.0
