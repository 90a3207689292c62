class Row:
    def __init__(self, index):
        self.index = index
        self.value = index % 97 / 97


ROWS = [Row(index) for index in range(50_000)]
