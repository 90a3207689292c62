"""A program of another framework."""

import os

import tensorflow as tf
from edtcallback import EDTLoggerCallback
from fabric_model import FabricModel
from tensorflow.keras.preprocessing.image import ImageDataGenerator

print("data in", os.environ["DATA_DIR"])


def get_dataset():
    (x, y), (x_test, y_test) = tf.keras.datasets.mnist.load_data()
    return ImageDataGenerator().flow(x, y), ImageDataGenerator().flow(x_test, y_test)


model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(10, activation="softmax")])
edt_m = FabricModel(
    model,
    get_dataset,
    loss_function="categorical_crossentropy",
    optimizer="adadelta",
    driver_logger=EDTLoggerCallback(),
    metrics=["accuracy"],
)
edt_m.train(2, 32, 4)
